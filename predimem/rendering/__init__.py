"""Which Vulkan driver renders, and ManiSkill on a software device."""
