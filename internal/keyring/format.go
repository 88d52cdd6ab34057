package keyring

import (
	"crypto/rand"
	"hash/crc32"
	"strings"
)

// Keys that we make look like bsk_<43 characters>_<6 characters>: 256 random
// bits, and their CRC-32, so that a typo is told from a wrong key and scanners
// for leaked secrets can know one.
const keyPrefix = "bsk_"

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKey makes a service key.
func NewKey() string {
	random := make([]byte, 43) // of 62 each: 256 bits
	for i := range random {
		random[i] = base62[randomBelow62()]
	}
	return keyPrefix + string(random) + "_" + checksum(string(random))
}

// randomBelow62 draws evenly: bytes beyond the last multiple of 62 are drawn
// again.
func randomBelow62() byte {
	var b [1]byte
	for {
		rand.Read(b[:]) //nolint:errcheck // never fails (crypto/rand)
		if b[0] < 248 {
			return b[0] % 62
		}
	}
}

func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var b [6]byte // 62^6 exceeds 2^32
	for i := range b {
		b[i] = base62[sum%62]
		sum /= 62
	}
	return string(b[:])
}

func wellFormed(key string) bool {
	rest, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(rest) != 43+1+6 || rest[43] != '_' {
		return false
	}
	return checksum(rest[:43]) == rest[44:]
}
