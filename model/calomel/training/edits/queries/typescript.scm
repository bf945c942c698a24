; As python.scm.
[
  (identifier)
  (property_identifier)
  (private_property_identifier)
  (shorthand_property_identifier)
  (shorthand_property_identifier_pattern)
  (statement_identifier)
  (type_identifier)
] @name
[
  (function_declaration)
  (generator_function_declaration)
  (method_definition)
  (arrow_function)
  (function_expression)
  (method_signature)
  (function_signature)
  (abstract_method_signature)
] @function
[(call_expression) (new_expression)] @call
(class_declaration name: (type_identifier) @type) @class
(abstract_class_declaration name: (type_identifier) @type)
(interface_declaration name: (type_identifier) @type)
(type_alias_declaration name: (type_identifier) @type)
(enum_declaration name: (identifier) @type)

(variable_declarator name: (identifier) @value @declared)
(public_field_definition name: (property_identifier) @field)
(property_signature name: (property_identifier) @field)

(pair key: (property_identifier) @key)
(pair_pattern key: (property_identifier) @key)
(shorthand_property_identifier_pattern) @declared
(required_parameter pattern: (identifier) @declared)
(optional_parameter pattern: (identifier) @declared)
(import_specifier (identifier) @outside)
(import_clause (identifier) @outside)
(namespace_import (identifier) @outside)
(export_specifier (identifier) @outside)
