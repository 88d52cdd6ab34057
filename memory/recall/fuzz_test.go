package recall

import (
	"testing"
	"time"
	"unicode/utf8"
)

// Whatever is said, hits lie within the messages, and no chunk comes
// twice.
func FuzzSearch(f *testing.F) {
	f.Add("I painted a fence", "When did Ann paint, on 8 May?", "Ann", int64(1683550000), uint8(3))
	f.Add("退款政策。退款ページ", "last friday", "", int64(0), uint8(1))
	f.Add("\xff\xfe always 12.12", "2023年5月8日", "\xff", int64(-1), uint8(0))
	f.Fuzz(func(t *testing.T, text, query, name string, at int64, remove uint8) {
		x := New(preference)
		var all []Message
		for i := range int64(4) {
			m := Message{Seq: 1 + i/2, N: int(i % 2), Role: []string{"user", "assistant"}[i%2], Name: name, Text: text, Tokens: len(text)/3 + 4}
			if at != 0 {
				m.Time = time.Unix(at%(1<<40), 0)
			}
			all = append(all, m)
			x.Add(m)
			text += " " + query
		}
		x.Remove(int64(remove % 4))
		type place struct {
			Ref
			from int
		}
		seen := make(map[place]bool)
		for _, h := range matches(x, Query{Text: query, Semantic: []Ref{{1, 0}}, SemanticWeight: .5}) {
			m := all[(h.Seq-1)*2+int64(h.N)]
			if h.From < 0 || h.To < h.From || h.To > len(m.Text) || h.Seq == int64(remove%4) {
				t.Fatalf("%+v of %d bytes", h, len(m.Text))
			}
			if utf8.ValidString(m.Text) && !utf8.ValidString(m.Text[h.From:h.To]) {
				t.Fatalf("%+v cuts a character", h)
			}
			if seen[place{h.Ref, h.From}] {
				t.Fatalf("%+v comes twice", h)
			}
			seen[place{h.Ref, h.From}] = true
		}
	})
}
