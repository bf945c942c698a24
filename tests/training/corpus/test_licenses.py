from __future__ import annotations

import pytest

from calomel.training.corpus.licenses import choose, header_fault, read_license
from calomel.training.corpus.packages import LicenseError, Member

BSD3 = (
    "Redistribution and use in source and binary forms, with or without modification, are permitted.\n"
    "Neither the name of the holder nor the names of its contributors may be used.\n"
)


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("MIT", "MIT"),
        ("MIT OR GPL-3.0-only", "MIT"),
        ("(GPL-2.0-only OR Apache-2.0) AND ISC", "Apache-2.0 AND ISC"),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0", "Apache-2.0"),
        ("Apache License 2.0", "Apache-2.0"),
    ],
)
def test_an_expression_passes_by_its_allowed_side(expression: str, chosen: str) -> None:
    assert choose(expression) == chosen


@pytest.mark.parametrize(
    "expression",
    ["", "GPL-3.0-only", "MIT AND GPL-2.0-only", "MPL-2.0", "UNLICENSED", "SEE LICENSE IN x", "BSD", "(MIT", "MIT OR"],
)
def test_an_expression_that_is_not_known_to_be_allowed_is_refused(expression: str) -> None:
    with pytest.raises(LicenseError):
        choose(expression)


def wheel_license(metadata: str, license_file: str = "") -> str:
    members = [Member("x-1.dist-info/METADATA", metadata.encode())]
    if license_file:
        members.append(Member("x-1.dist-info/licenses/LICENSE", license_file.encode()))
    return read_license("pypi", members)


def test_a_vague_classifier_is_settled_by_the_license_file() -> None:
    metadata = "Name: x\nClassifier: License :: OSI Approved :: BSD License\n"
    assert wheel_license(metadata, BSD3) == "BSD-3-Clause"
    with pytest.raises(LicenseError):
        wheel_license(metadata)


def test_a_package_that_declares_nothing_is_refused_even_with_a_license_file() -> None:
    with pytest.raises(LicenseError):
        wheel_license("Name: x\n", BSD3)


def test_a_copyleft_license_file_overrules_the_metadata() -> None:
    with pytest.raises(LicenseError, match="GENERAL PUBLIC"):
        wheel_license("Name: x\nLicense-Expression: MIT\n", "GNU GENERAL PUBLIC LICENSE\nVersion 3\n")


def test_one_classifier_that_is_not_allowed_refuses_the_package() -> None:
    with pytest.raises(LicenseError):
        wheel_license(
            "Name: x\nClassifier: License :: OSI Approved :: MIT License\n"
            "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)\n"
        )


@pytest.mark.parametrize(
    "header",
    [
        "# SPDX-License-Identifier: GPL-3.0-or-later\n",
        "# This file is free software under the GNU General Public License.\n",
        "// Licensed under the MPL, version 2.0\n",
        "/* ACME Corp. Confidential */\n",
        "// CC-BY-NC 4.0\n",
    ],
)
def test_a_file_header_under_another_license_is_refused(header: str) -> None:
    assert header_fault(header) == "license"


def test_an_allowed_file_header_passes() -> None:
    assert header_fault("# SPDX-License-Identifier: MIT\n") is None
    assert header_fault("// Copyright 2020. All rights reserved. Use is governed by a BSD-style license.\n") is None
