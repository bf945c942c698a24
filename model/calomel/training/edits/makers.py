"""All makers of stories, by kind."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from calomel.training.edits.constant_extracted import constant_extracted
from calomel.training.edits.field_added import field_added
from calomel.training.edits.import_added import import_added
from calomel.training.edits.line_completed import line_completed
from calomel.training.edits.made_async import made_async
from calomel.training.edits.options_object import options_object
from calomel.training.edits.parameter_added import parameter_added
from calomel.training.edits.parameter_removed import parameter_removed
from calomel.training.edits.parameters_reordered import parameters_reordered
from calomel.training.edits.rename import rename
from calomel.training.edits.repeated_edit import repeated_edit
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story
from calomel.training.edits.type_changed import type_changed
from calomel.training.edits.typo_fixed import typo_fixed
from calomel.training.edits.variant_added import variant_added

Maker = Callable[[Source, random.Random], Story | None]

MAKERS: Final[Mapping[str, Maker]] = MappingProxyType(
    {
        "constant_extracted": constant_extracted,
        "field_added": field_added,
        "import_added": import_added,
        "line_completed": line_completed,
        "made_async": made_async,
        "options_object": options_object,
        "parameter_added": parameter_added,
        "parameter_removed": parameter_removed,
        "parameters_reordered": parameters_reordered,
        "rename": rename,
        "repeated_edit": repeated_edit,
        "type_changed": type_changed,
        "typo_fixed": typo_fixed,
        "variant_added": variant_added,
    }
)
