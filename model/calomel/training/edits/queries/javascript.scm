; As python.scm.
[
  (identifier)
  (property_identifier)
  (private_property_identifier)
  (shorthand_property_identifier)
  (shorthand_property_identifier_pattern)
  (statement_identifier)
] @name
[
  (function_declaration)
  (generator_function_declaration)
  (method_definition)
  (arrow_function)
  (function_expression)
] @function
[(call_expression) (new_expression)] @call
(class_declaration name: (identifier) @type) @class

(variable_declarator name: (identifier) @value @declared)
(field_definition property: (property_identifier) @field)

(pair key: (property_identifier) @key)
(pair_pattern key: (property_identifier) @key)
(shorthand_property_identifier_pattern) @declared
(formal_parameters (identifier) @declared)
(import_specifier (identifier) @outside)
(import_clause (identifier) @outside)
(namespace_import (identifier) @outside)
(export_specifier (identifier) @outside)
