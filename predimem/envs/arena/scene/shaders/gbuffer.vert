// Metres and directions in the camera's frame: x right, y up, z backwards.
#version 450
#define VERTEX
#include "camera.glsl"
#include "object.glsl"

layout(location = 0) out vec3 seenAt;
layout(location = 1) out vec3 facing;
layout(location = 2) out vec2 pictureAt;

void main() {
  mat4 toCamera = camera.viewMatrix * placed.modelMatrix;
  vec3 x = toCamera[0].xyz, y = toCamera[1].xyz, z = toCamera[2].xyz;
  vec4 at = toCamera * vec4(position, 1);
  seenAt = at.xyz;
  facing = mat3(cross(y, z), cross(z, x), cross(x, y)) * normal;  // also where an object is stretched
  pictureAt = uv;
  gl_Position = camera.projectionMatrix * at;
}
