package frame

import (
	"encoding/binary"
	"math/bits"
)

// Mask writes src to dst, masked or unmasked with key, which is the same (RFC 6455 5.3). at is how many bytes of the
// payload came before src. dst is as long as src, and is src or does not overlap it.
func Mask(dst, src []byte, key [4]byte, at int64) {
	k := bits.RotateLeft32(binary.LittleEndian.Uint32(key[:]), int(at&3)*-8)
	wide := uint64(k)<<32 | uint64(k)
	dst = dst[:len(src)]
	for len(src) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src)^wide)
		dst, src = dst[8:], src[8:]
	}
	for i, b := range src {
		dst[i] = b ^ byte(k)
		k = bits.RotateLeft32(k, -8)
	}
}
