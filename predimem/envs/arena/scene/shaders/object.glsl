layout(set = 1, binding = 0) uniform ObjectTransformBuffer {
  mat4 modelMatrix;
} placed;

layout(set = 1, binding = 1) uniform ObjectDataBuffer {
  uvec4 segmentation;
  float transparency;
  int shadeFlat;
} object;

// What SAPIEN keeps of a vertex. All packs of a process have to agree on it, so the unused are named too.
#ifdef VERTEX
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec2 uv;
layout(location = 3) in vec3 tangent;
layout(location = 4) in vec3 bitangent;
#endif
