"""Bodies of `/v1/models` and its siblings."""

from __future__ import annotations

from pydantic import BaseModel


class Pricing(BaseModel):
    """Published PricingInfo, per token. Your own machine sends no bill."""

    prompt: str = "0"
    completion: str = "0"
    input_cache_reads: str = "0"
    input_cache_writes: str = "0"


class ModelObject(BaseModel):
    """Published ModelObject, with the `supported_endpoints` that newer clients require."""

    id: str
    name: str
    created: int
    description: str
    input_modalities: list[str] = ["text"]
    output_modalities: list[str] = ["text"]
    context_length: int
    max_output_length: int
    pricing: Pricing = Pricing()
    supported_sampling_parameters: list[str]
    supported_features: list[str] = []
    supported_endpoints: list[str]


class Models(BaseModel):
    """Published ModelsResponse."""

    data: list[ModelObject]
