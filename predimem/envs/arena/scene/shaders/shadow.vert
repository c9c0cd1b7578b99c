// Depth as a lamp sees it. Runs for each lamp that casts shadows.
#version 450
#define VERTEX
#include "object.glsl"

layout(set = 0, binding = 0) uniform LightBuffer {
  mat4 viewMatrix;
  mat4 viewMatrixInverse;
  mat4 projectionMatrix;
  mat4 projectionMatrixInverse;
  int width;
  int height;
} lamp;

void main() {
  gl_Position = lamp.projectionMatrix * (lamp.viewMatrix * (placed.modelMatrix * vec4(position, 1)));
}
