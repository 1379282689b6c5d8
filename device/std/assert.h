/*
 * <assert.h> and <cassert> for device files: NVRTC has assert built in, and heeds -DNDEBUG. It may be included again and
 * again, as the C standard says.
 */
