// Light on what the first pass found: ambient and directional lamps, of which the first may cast a shadow.
// Diffuse (Lambert) and glossy (GGX with Schlick's terms) reflection, and no other effect.
#version 450
#include "camera.glsl"

// SAPIEN wants all of these declared.
layout(constant_id = 0) const int NUM_DIRECTIONAL_LIGHTS = 3;
layout(constant_id = 1) const int NUM_DIRECTIONAL_LIGHT_SHADOWS = 1;
layout(constant_id = 2) const int NUM_POINT_LIGHTS = 10;
layout(constant_id = 3) const int NUM_POINT_LIGHT_SHADOWS = 3;
layout(constant_id = 4) const int NUM_SPOT_LIGHTS = 10;
layout(constant_id = 5) const int NUM_SPOT_LIGHT_SHADOWS = 10;
layout(constant_id = 6) const int NUM_TEXTURED_LIGHT_SHADOWS = 1;

struct DirectionalLight {
  vec4 direction;
  vec4 emission;
};
struct PointLight {
  vec4 position;
  vec4 emission;
};
struct SpotLight {
  vec4 position;
  vec4 direction;
  vec4 emission;
};
layout(set = 1, binding = 0) uniform SceneBuffer {
  vec4 ambientLight;
  DirectionalLight directionalLights[3];
  SpotLight spotLights[10];
  PointLight pointLights[10];
  SpotLight texturedLights[1];
} scene;

struct LightBuffer {
  mat4 viewMatrix;
  mat4 viewMatrixInverse;
  mat4 projectionMatrix;
  mat4 projectionMatrixInverse;
  int width;
  int height;
};
layout(set = 1, binding = 1) uniform ShadowBuffer {
  LightBuffer directionalLightBuffers[1];
  LightBuffer spotLightBuffers[10];
  LightBuffer pointLightBuffers[18];
  LightBuffer texturedLightBuffers[1];
} shadow;
layout(set = 1, binding = 2) uniform samplerCube samplerPointLightDepths[3];
layout(set = 1, binding = 3) uniform sampler2D samplerDirectionalLightDepths[1];
layout(set = 1, binding = 4) uniform sampler2D samplerTexturedLightDepths[1];
layout(set = 1, binding = 5) uniform sampler2D samplerSpotLightDepths[10];

layout(set = 2, binding = 0) uniform sampler2D samplerAlbedo;
layout(set = 2, binding = 1) uniform sampler2D samplerNormal;
layout(set = 2, binding = 2) uniform sampler2D samplerPosition;

layout(location = 0) out vec4 outPicture;

const float PI = 3.14159265;

struct Surface {
  vec3 at, toEye, normal, diffuse, mirror;  // mirror: what it reflects straight back
  float spread, shading, towardsEye;        // spread: GGX's alpha squared; shading: the k of Smith's term
};

vec3 lightFrom(int i, Surface s) {
  vec3 toLamp = -(mat3(camera.viewMatrix) * scene.directionalLights[i].direction.xyz);
  float towardsLamp = max(dot(s.normal, toLamp), 0);
  vec3 halfway = normalize(toLamp + s.toEye);
  float aligned = max(dot(s.normal, halfway), 0), grazing = max(dot(s.toEye, halfway), 0);
  vec3 fresnel = s.mirror + (1 - s.mirror) * exp2((-5.55473 * grazing - 6.98316) * grazing);
  float lobe = aligned * aligned * (s.spread - 1) + 1;
  float masked = mix(s.towardsEye, 1, s.shading) * mix(towardsLamp, 1, s.shading);
  vec3 gloss = fresnel * (s.spread / max(4 * PI * lobe * lobe * masked, 1e-6));
  return scene.directionalLights[i].emission.rgb * (s.diffuse + gloss) * towardsLamp;
}

// The part of the first lamp that is seen from a point: over 3 x 3 texels about it, bilinear.
float unshadowed(vec3 at) {
  mat4 view = shadow.directionalLightBuffers[0].viewMatrix;
  mat4 projection = shadow.directionalLightBuffers[0].projectionMatrix;
  vec3 spot = (projection * (view * (camera.viewMatrixInverse * vec4(at, 1)))).xyz;  // orthographic: w is 1
  spot.xy = spot.xy * 0.5 + 0.5;
  vec2 size = vec2(textureSize(samplerDirectionalLightDepths[0], 0));
  vec2 part = fract(spot.xy * size + 0.5);
  vec4 across = vec4(1 - part.x, 1, 1, part.x), down = vec4(1 - part.y, 1, 1, part.y);
  float sum = 0;
  for (int row = 0; row < 4; row += 2) {
    for (int column = 0; column < 4; column += 2) {
      vec4 depths = textureGather(samplerDirectionalLightDepths[0], spot.xy + (vec2(column, row) - 1) / size);
      vec4 free = vec4(greaterThanEqual(depths, vec4(spot.z)));
      vec2 weights = vec2(across[column], across[column + 1]);
      sum += down[row] * dot(weights, free.wz) + down[row + 1] * dot(weights, free.xy);
    }
  }
  return sum / 9;
}

void main() {
  ivec2 pixel = ivec2(gl_FragCoord.xy);
  vec4 albedo = texelFetch(samplerAlbedo, pixel, 0);
  vec4 normal = texelFetch(samplerNormal, pixel, 0);
  vec4 position = texelFetch(samplerPosition, pixel, 0);
  float roughness = albedo.a, metallic = normal.w, specular = 0.08 * position.w;

  Surface s;
  s.at = position.xyz;
  s.toEye = -normalize(s.at);
  s.normal = normal.xyz;
  s.diffuse = albedo.rgb * (1 - metallic) / PI;
  s.mirror = mix(vec3(specular), albedo.rgb, metallic);
  float alpha = roughness * roughness;
  s.spread = alpha * alpha;
  s.shading = (alpha + 2 * roughness + 1) / 8;
  s.towardsEye = max(dot(s.normal, s.toEye), 0);

  vec3 light = scene.ambientLight.rgb * albedo.rgb;
  // Not a loop: software drivers unroll nothing, and are slow where an index varies.
  if (NUM_DIRECTIONAL_LIGHTS > 0) {
    light += lightFrom(0, s) * (NUM_DIRECTIONAL_LIGHT_SHADOWS > 0 ? unshadowed(s.at) : 1);
  }
  if (NUM_DIRECTIONAL_LIGHTS > 1) {
    light += lightFrom(1, s);
  }
  if (NUM_DIRECTIONAL_LIGHTS > 2) {
    light += lightFrom(2, s);
  }
  if (s.at.z == 0) {  // nothing is there
    light = scene.ambientLight.rgb;
  }
  outPicture = vec4(pow(clamp(light, 0, 1), vec3(1 / 2.2)), 1);
}
