// What is at each pixel, without light: small triangles fill many pixels in vain, so this has to be cheap.
#version 450
#include "object.glsl"

layout(set = 2, binding = 0) uniform MaterialBuffer {
  vec4 emission;
  vec4 baseColor;
  float fresnel;
  float roughness;
  float metallic;
  float transmission;
  float ior;
  float transmissionRoughness;
  int textureMask;
  int padding1;
  vec4 textureTransforms[6];
} material;
layout(set = 2, binding = 1) uniform sampler2D colorTexture;

layout(location = 0) in vec3 seenAt;
layout(location = 1) in vec3 facing;
layout(location = 2) in vec2 pictureAt;

// ".xyz" and ".rgb" are what the names say; the fourth is for the shading.
layout(location = 0) out vec4 outAlbedo;
layout(location = 1) out vec4 outNormal;
layout(location = 2) out vec4 outPosition;
layout(location = 3) out uvec4 outSegmentation;

void main() {
  vec3 albedo = material.baseColor.rgb;
  if ((material.textureMask & 1) != 0) {
    vec4 fit = material.textureTransforms[0];
    albedo = texture(colorTexture, pictureAt * fit.zw + fit.xy).rgb;
  }
  vec3 normal = normalize(facing);
  outAlbedo = vec4(albedo, material.roughness);
  outNormal = vec4(faceforward(normal, seenAt, normal), material.metallic);
  outPosition = vec4(seenAt, material.fresnel);
  outSegmentation = object.segmentation;
}
