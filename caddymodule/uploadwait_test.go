package caddymodule

import (
	"testing"
	"time"
)

// AnswerUploadsAfter has replies to uploads wait for less. It comes ahead of
// the start of a site.
func AnswerUploadsAfter(t *testing.T, d time.Duration) {
	before := uploadWait
	uploadWait = d
	t.Cleanup(func() { uploadWait = before })
}
