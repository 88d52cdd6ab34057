package knowledge

import (
	"strings"
	"testing"
)

func TestNGramsRankWhatHasNoStems(t *testing.T) {
	for name, c := range map[string]struct {
		question, want string
		texts          []string
	}{
		"german": {"Wann wird das Passwort des Benutzers zurückgesetzt?", "1 ",
			[]string{"Das Wetter ist heute gut.", "Die Zurücksetzung von Passwörtern der Benutzer", "Ein Wort über den Pass"}},
		"german compounds": {"Wie ist die Kündigungsfrist?", "2 ",
			[]string{"Die Lieferung ist schnell.", "Eine Frist ist gesetzt.", "KÜNDIGUNGSFRISTEN sind lang."}},
		"russian": {"Когда возвращают деньги?", "1 ",
			[]string{"Погода сегодня хорошая.", "О возвращении денежных средств", "Когда-нибудь потом"}},
		"english has stems": {"When are passwords reset?", "", []string{"the weather", "resetting a password"}},
		"chinese has pairs": {"什么时候退款？", "", []string{"天气", "退款"}},
		"no words":          {"?!", "", []string{"a", "b"}},
		"a pasted document": {strings.Repeat("Wann wird das Passwort zurückgesetzt? ", 100), "", []string{"Das Passwort", "das Wetter"}},
		"one hit":           {"Wann wird das Passwort zurückgesetzt?", "", []string{"Das Passwort"}},
	} {
		if got := names(byGrams(c.question, scored(c.texts...))); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestGramsAreOfWordsWithTheirBorders(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "ab": 1, "abc": 2, "abcd ef": 4, "  ab, é…": 1, "ÀÉÎ": 2, "\xff\xfeab\xff": 1, "ab\x00cd": 2} {
		n := 0
		for range grams(text) {
			n++
		}
		if n != want {
			t.Errorf("%q has %d, want %d", text, n, want)
		}
	}
	collect := func(text string) (all []uint64) {
		for g := range grams(text) {
			all = append(all, g)
		}
		return all
	}
	if a, b := collect("ÜBER Maß"), collect("über maß"); len(a) != 5 || len(b) != 5 || a[0] != b[0] || a[4] != b[4] {
		t.Errorf("case tells them apart: %x, %x", a, b)
	}
}

func BenchmarkGrams(b *testing.B) {
	var texts []string
	for i := range 60 {
		texts = append(texts, strings.Repeat("Die Kündigungsfristen sind für Käufer möglichst lang. ", 19+i%3))
	}
	hits := scored(texts...)
	for b.Loop() {
		byGrams("Wann werden die Passwörter der Benutzer zurückgesetzt und wie?", hits)
	}
}
