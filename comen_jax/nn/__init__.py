"""Neural networks: SDNorm, style, ProtoGR, backbones, pretrained weights."""
