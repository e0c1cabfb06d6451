"""Floor 0: defines visits, classifies them and stores them. The names imported here are its public names.

Import everything else from its own module, such as data.ingest.importer, since loading the rules takes time.
"""

from data.errors import BadInput, LakeDamaged, OutdatedManifest, TrafficError
from data.store.lake import Lake
from data.visits import BOT_CATEGORIES, SHORT_CODE_PATTERN, check_organization, is_organization
