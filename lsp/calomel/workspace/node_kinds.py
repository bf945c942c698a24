"""What the grammars call the things that matter here: definitions by kind, imports, comments, strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SCRIPT: Final = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
    "variable_declarator": "variable",
}
_TYPED_SCRIPT: Final = _SCRIPT | {
    "abstract_class_declaration": "class",
    "abstract_method_signature": "method",
    "enum_declaration": "enum",
    "function_signature": "function",
    "interface_declaration": "interface",
    "internal_module": "module",
    "method_signature": "method",
    "type_alias_declaration": "type",
}
_C: Final = {
    "enum_specifier": "enum",
    "function_definition": "function",
    "preproc_def": "macro",
    "preproc_function_def": "macro",
    "struct_specifier": "struct",
    "type_definition": "type",
    "union_specifier": "union",
}

# Grammar's name → node kind → kind of the definition.
DEFINITIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "python": {"function_definition": "function", "class_definition": "class", "assignment": "variable"},
    "javascript": _SCRIPT,
    "typescript": _TYPED_SCRIPT,
    "tsx": _TYPED_SCRIPT,
    "go": {
        "const_spec": "constant",
        "function_declaration": "function",
        "method_declaration": "method",
        "method_elem": "method",
        "type_alias": "type",
        "type_spec": "type",
        "var_spec": "variable",
    },
    "rust": {
        "const_item": "constant",
        "enum_item": "enum",
        "function_item": "function",
        "function_signature_item": "function",
        "impl_item": "impl",
        "macro_definition": "macro",
        "mod_item": "module",
        "static_item": "variable",
        "struct_item": "struct",
        "trait_item": "trait",
        "type_item": "type",
        "union_item": "union",
    },
    "java": {
        "annotation_type_declaration": "interface",
        "class_declaration": "class",
        "constructor_declaration": "method",
        "enum_declaration": "enum",
        "interface_declaration": "interface",
        "method_declaration": "method",
        "record_declaration": "class",
    },
    "c": _C,
    "cpp": _C
    | {
        "alias_declaration": "type",
        "class_specifier": "class",
        "concept_definition": "type",
        "namespace_definition": "module",
    },
    "c_sharp": {
        "class_declaration": "class",
        "constructor_declaration": "method",
        "delegate_declaration": "type",
        "enum_declaration": "enum",
        "interface_declaration": "interface",
        "local_function_statement": "function",
        "method_declaration": "method",
        "namespace_declaration": "module",
        "property_declaration": "property",
        "record_declaration": "class",
        "struct_declaration": "struct",
    },
    "ruby": {
        "class": "class",
        "method": "method",
        "module": "module",
        "singleton_method": "method",
    },
    "bash": {"function_definition": "function"},
    "json": {},
    "html": {},
    "css": {},
}

# Variables count where the whole file sees them, and where they hold a function or a class.
VARIABLES: Final = frozenset({"assignment", "variable_declarator", "const_spec", "var_spec"})
_SCRIPT_PLACES: Final = (
    "(program (lexical_declaration (variable_declarator) @d))",
    "(program (export_statement (lexical_declaration (variable_declarator) @d)))",
    "(variable_declarator value: [(arrow_function) (function_expression) (generator_function) (class)]) @d",
)
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "python": (
        "(module (expression_statement (assignment left: (identifier)) @d))",
        "(class_definition body: (block (expression_statement (assignment left: (identifier)) @d)))",
    ),
    "javascript": _SCRIPT_PLACES,
    "typescript": _SCRIPT_PLACES,
    "tsx": _SCRIPT_PLACES,
    "go": (
        "(source_file (const_declaration (const_spec) @d))",
        "(source_file (var_declaration (var_spec) @d))",
        "(source_file (var_declaration (var_spec_list (var_spec) @d)))",
    ),
}
# A mere mention has the same kind of node as the definition, without a body.
WITH_BODY_ONLY: Final = frozenset({"enum_specifier", "struct_specifier", "union_specifier", "class_specifier"})
# Their members are blocks of their own.
CONTAINERS: Final = frozenset({"class", "interface", "struct", "impl", "trait", "module", "enum", "union"})
# Values that make a variable a function or a class, wherever it stands.
CALLABLE_VALUES: Final = frozenset({"arrow_function", "function_expression", "generator_function", "class"})

_INTERPOLATION: Final = ("interpolation", "substitution", "expansion")
# Parts of strings are recognised by name; these have one of their own.
_STRINGS: Final = frozenset({
    "attribute_value", "char_literal", "character_literal", "heredoc_body", "heredoc_content", "regex", "rune_literal",
})  # fmt: skip
# Several strings, and code between them.
_GROUPS: Final = frozenset({"chained_string", "concatenated_string", "string_array"})


def is_comment(kind: str) -> bool:
    """Whether a node of this kind is a comment, in any of the grammars."""
    return "comment" in kind


def is_string(kind: str) -> bool:
    """Whether a node of this kind is a string or a part of one, in any of the grammars."""
    return kind in _STRINGS or ("string" in kind and kind not in _GROUPS and not is_interpolation(kind))


def is_interpolation(kind: str) -> bool:
    """Whether a node of this kind is code within a string."""
    return kind.endswith(_INTERPOLATION)
