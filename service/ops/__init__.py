"""Operations: maintenance, doctor, health."""
