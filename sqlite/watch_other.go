//go:build !linux

package sqlite

import "errors"

var errNoHeader = errors.New("sqlite: this system doesn't tell how to map an open file")

func newHeaderWatch(string) (watch, error) { return nil, errNoHeader }
