package terms

import (
	"strings"
	"testing"
)

// Words from the steps of Porter's paper, taken through all of them.
func TestStems(t *testing.T) {
	for stem, words := range map[string]string{
		"caress": "caresses caress", "poni": "ponies", "cat": "cats cat", "agre": "agreed", "plaster": "plastered",
		"sing": "sing", "motor": "motoring", "hop": "hopping hop hops", "hope": "hoping hope", "fall": "falling", "file": "filing",
		"size": "sized", "happi": "happy happiness", "sky": "sky", "relat": "relational related", "ration": "rational",
		"oper": "operator operating operation", "decis": "decisiveness", "adjust": "adjustment adjustable adjusted",
		"adopt": "adoption adopts", "paint": "painted painting paints", "rate": "rate rates", "control": "controlling controlled",
		"ion": "ion", "as": "as", "größe": "größe", "2nds": "2nds", "": "",
	} {
		for _, w := range strings.Split(words, " ") {
			if got := Stem(w); got != stem {
				t.Errorf("the stem of %q is %q, want %q", w, got, stem)
			}
		}
	}
}

func FuzzStem(f *testing.F) {
	f.Add("ied")
	f.Add("yyying")
	f.Fuzz(func(t *testing.T, word string) {
		if s := Stem(word); len(s) > len(word) || word != "" && s == "" {
			t.Errorf("the stem of %q is %q", word, s)
		}
	})
}
