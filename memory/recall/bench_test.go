package recall

import "testing"

func BenchmarkAdd(b *testing.B) {
	_, all := talk(chatter(2000)...)
	size := 0
	for _, m := range all {
		size += len(m.Text)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var x *Index
	for b.Loop() {
		x = New(preference)
		x.Add(all...)
	}
	b.ReportMetric(float64(x.Bytes())/float64(size), "held/text")
}

// A request of a long session adds one exchange.
func BenchmarkAddOneExchange(b *testing.B) {
	x, all := talk(chatter(10_000)...)
	last := all[len(all)-2:]
	b.ReportAllocs()
	for b.Loop() {
		x.Remove(last[0].Seq)
		x.Add(last...)
	}
}

func BenchmarkSearch(b *testing.B) {
	x, all := talk(chatter(10_000)...)
	for name, q := range map[string]Query{
		"8k tokens": {Text: all[50].Text},
		"dates":     {Text: "When was wabc, on 8 May 2023 or last week?"},
		"no match":  {Text: "thanks!"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0 // as many as fill some thousand tokens
				x.Search(q).Matches(func(Hit) bool { n++; return n < 200 })
			}
		})
	}
}
