package redis

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// value is one of RESP2, as it is on the wire.
type value struct {
	kind  byte // of + - : $ *
	text  string
	null  bool
	items []value
}

func readValue(r *bufio.Reader) (v value, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return v, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return v, io.ErrUnexpectedEOF
	}
	v.kind, v.text = line[0], line[1:]
	if v.kind != '$' && v.kind != '*' {
		return v, nil
	}
	n, err := strconv.Atoi(v.text)
	if err != nil {
		return v, fmt.Errorf("a length of %q", v.text)
	}
	v.text = ""
	if n < 0 {
		v.null = true
		return v, nil
	}
	if v.kind == '$' {
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		v.text = string(b[:n])
		return v, err
	}
	for range n {
		item, err := readValue(r)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
	return v, nil
}

func (v value) append(b []byte) []byte {
	b = append(b, v.kind)
	switch {
	case v.null:
		b = append(b, "-1"...)
	case v.kind == '$':
		b = strconv.AppendInt(b, int64(len(v.text)), 10)
		b = append(b, "\r\n"...)
		b = append(b, v.text...)
	case v.kind == '*':
		b = strconv.AppendInt(b, int64(len(v.items)), 10)
		b = append(b, "\r\n"...)
		for _, item := range v.items {
			b = item.append(b)
		}
		return b
	default:
		b = append(b, v.text...)
	}
	return append(b, "\r\n"...)
}

// replace returns v with one text in place of another, wherever it stands.
func (v value) replace(old, new string) value {
	v.text = strings.ReplaceAll(v.text, old, new)
	items := v.items
	v.items = nil
	for _, item := range items {
		v.items = append(v.items, item.replace(old, new))
	}
	return v
}
