from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.secret import secret
from calomel.workspace.secrets import mask

DROPPED = {
    "inside of a secret": "key = '▒hunt├x┤er22▒'\n",
    "beside a secret": "key = '▒hunter22▒├x┤'\n",
    "a secret replaced": "‸key = ├'▒hunter22▒'→'x'┤\n",
    "a line with a secret deleted": "a‸\n├key = '▒hunter22▒'\n→┤b\n",
    "the second of two edits": "├a→b┤‸\nkey = '▒hunter22▒├x┤'\n",
    "the mask in quotes": "token = ├'****************'┤\n",
    "the mask in an address": "url = ├https://user:********@host┤\n",
    "the mask in an empty file": "├key = ********┤",
    "what looks like a key": "aws = ├'AKIAIOSFODNN7REALKEY'┤\n",
    "what its name makes a secret": "password = ├'tr0ub4dor&3xyz'┤\n",
    "beyond ASCII": "passé = '▒é├x┤é▒'\n",
}
KEPT = {
    "elsewhere": "key = '▒hunter22▒'\nx = ├1┤\n",
    "a banner": "├/**********************┤\n",
    "packed arguments": "f(├**kwargs┤)\n",
    "a name": "password = ├read_password()┤\n",
    "in an empty file": "├x = 1┤",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_secrets_are_not_touched_not_shown_and_not_made(case: str) -> None:
    assert drops(secret, case, mask=mask)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_everything_else_stays(case: str) -> None:
    assert not drops(secret, case, mask=mask)
