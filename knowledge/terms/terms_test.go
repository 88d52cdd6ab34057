package terms

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestWordsAreNormalised(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                      {" \n—…!", ""},
		"case and punctuation":         {"Hello, WORLD! (really)", "hello world really"},
		"unicode punctuation":          {"alpha—beta “quoted” don’t a\u00a0b", "alpha beta quoted don t a b"},
		"composed as decomposed":       {"caf\u00e9 cafe\u0301", "cafe cafe"},
		"full case folding":            {"STRASSE straße", "strasse strasse"},
		"final sigma":                  {"ΟΔΟΣ οδος", "οδοσ οδοσ"},
		"full width and ligatures":     {"ＡＢＣ ﬁne", "abc fine"},
		"soft hyphens and joiners":     {"re\u00adfund re\u200dfund re\u200bfund", "refund refund re fund"},
		"digits":                       {"1,000 B2B 3.14", "1 000 b2b 3 14"},
		"other digits":                 {"٣ x²", "٣ x2"},
		"camel case":                   {"parseURL HTTPServer iPhone", "parseurl parse url httpserver http server iphone phone"},
		"snake case":                   {"max_tokens __init__ a_b _ x_", "maxtokens max tokens init ab x"},
		"digits in identifiers":        {"utf8Decode SHA256", "utf8decode utf8 decode sha256"},
		"chinese":                      {"退款政策", "退款 款政 政策"},
		"a single character":           {"水 x", "水 x"},
		"chinese beside latin":         {"iOS手机App", "ios os 手机 app"},
		"japanese":                     {"データ が", "デー ータ が"},
		"half-width kana":              {"ﾃﾞｰﾀ", "デー ータ"},
		"korean":                       {"한국어", "한국 국어"},
		"decomposed korean":            {"\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"},
		"thai with vowels above":       {"กินข้าว", "กิน นข้ ข้า าว"},
		"russian and its beginnings":   {"Возвраты ещё", "возвраты возвр еще"},
		"arabic without vowel points":  {"كِتَاب كـتاب", "كتاب كتاب"},
		"hebrew without points":        {"שָׁלוֹם", "שלום"},
		"devanagari keeps its vowels":  {"हिन्दी", "हिन्दी हिन्द"},
		"german by its function words": {"Die Kündigung ist möglich", "die kundigung kundi ist moglich mogli"},
		"english beside a german word": {"The Kindergarten is closed", "the kindergarten is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Of(c.text), " "); got != c.want {
				t.Errorf("%q gives\n%s, want\n%s", c.text, got, c.want)
			}
		})
	}
}

func TestUnstemmedIsWhatIsNotEnglish(t *testing.T) {
	for text, want := range map[string]bool{
		"How long is the refund window?": false, "parseURL max_tokens": false, "": false, "42": false, "退款政策": false, "한국어": false,
		"Wie lange ist die Frist für den Umtausch?": true, "Was bewirkt körperliche Bestrafung?": true, "Сколько дней?": true,
		"ما هي مدة الإرجاع": true, "Combien de temps pour les retours ?": true,
	} {
		if got := Unstemmed(text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}

func TestEncodedDataIsCut(t *testing.T) {
	got := Of(strings.Repeat("x", 10_000) + " " + strings.Repeat("я", 10_000))
	if len(got) != 3 || len(got[0]) != maxRunes || utf8.RuneCountInString(got[1]) != maxRunes {
		t.Errorf("got %d words", len(got))
	}
}

// Whatever a code point decomposes or folds to, a second time changes nothing.
func TestFoldingTwiceIsFoldingOnce(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Cf, unicode.S) {
			continue
		}
		once := fold(compose(string(r)))
		if twice := fold(compose(once)); twice != once {
			t.Errorf("%U: %+q, then %+q", r, once, twice)
		}
	}
}

func TestQueriesHoldWhatTellsTextsApart(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"stop words":       {"What is the refund window?", "refund window"},
		"contractions":     {"Don't we'll they've", ""},
		"nothing but them": {"how do I do this", ""},
		"punctuation":      {"?!", ""},
		"repeats":          {"Refund, refund and REFUND", "refund"},
		"operators":        {`foo)|(@tenant:{beta} "x" -y*`, "foo tenant beta x y"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Query(c.text), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLongQueriesKeepTheRareLookingWordsInOrder(t *testing.T) {
	var filler []string
	for a := 'a'; a <= 'z'; a++ {
		filler = append(filler, "x"+string(a), "y"+string(a))
	}
	text := "invoice " + strings.Join(filler, " ") + " SKU4711 cancellation"
	got := Query(text)
	if len(got) != 32 || got[0] != "invoice" || !slices.Equal(got[30:], []string{"sku4711", "cancellation"}) {
		t.Errorf("got %d: %v", len(got), got)
	}
}

func TestTheQuestionCountsAtEitherEndOfAPastedDocument(t *testing.T) {
	document := strings.Repeat("some ordinary words of text. ", 40_000)
	for _, text := range []string{"Bankruptcy? " + document, document + " Bankruptcy?"} {
		start := time.Now()
		got := Query(text)
		if !slices.Contains(got, "bankruptcy") {
			t.Errorf("got %v", got)
		}
		if d := time.Since(start); d > time.Second { // measured: a few milliseconds
			t.Errorf("took %v", d)
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"", "Hello, wörld_fooBar", "退款ページ กิน", "\xff\xfe", "İIıi ŉ ǰ ΐ", "a\u0301\u0327\u200d_\u00ad", "ẞ²㍿ﷺ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := Of(text)
		for _, w := range words {
			if w == "" || !utf8.ValidString(w) || strings.ContainsAny(w, " \t\n\"'_-|@{}()*\x00") {
				t.Fatalf("%+q gives the word %+q", text, w)
			}
		}
		query := Query(text)
		if len(query) > maxQuery {
			t.Fatalf("%d query terms", len(query))
		}
		for i, q := range query {
			if stop[q] || slices.Contains(query[:i], q) || len(text) < window && !slices.Contains(words, q) {
				t.Fatalf("%+q gives the query term %+q", text, q)
			}
		}
	})
}

func BenchmarkOf(b *testing.B) {
	for name, s := range map[string]string{"english": "The quick brown fox jumps over the lazy dog. ", "russian": "Съешь же ещё этих мягких французских булок. ", "chinese": "天地玄黄宇宙洪荒日月盈昃"} {
		text := strings.Repeat(s, 200)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Of(text)
			}
		})
	}
}
