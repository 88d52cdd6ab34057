package terms

import (
	"slices"
	"strings"
	"unicode"
)

// function holds words that every text in some language is full of, for
// languages that are written in Latin letters and inflect their words. They
// are spelt as fold leaves them and have two letters at least: single ones are
// names of variables. English words among them do no harm: an English text has
// more of its own.
var function = set(
	"der die das und ist nicht ein eine den dem von mit auf fur sich auch wie wer wo wann welche welcher welches wurde sind", // German
	"le la les des du une et est dans que qui pour sur pas plus avec sont quel quelle quels quelles comment ou par",          // French
	"el los las una que por para con se del es como mas cual cuales quien donde cuando cuanto fue son al",                    // Spanish
	"il lo gli di che non per con sono della del dei nel alla come quale quali chi dove quando si",                           // Italian
	"os as um uma que nao para com do da dos das em no na por mais como qual quais quem onde foi",                            // Portuguese
	"de het een van en dat niet op voor met zijn aan wie wat hoe waar welke wordt ook",                                       // Dutch
	"och att det som en ett av for med den inte ar till pa var hur vilka og ikke er af hvad hvem jeg hvor",                   // Swedish, Danish, Norwegian
	"na nie sie jest do to jak co kto gdzie kiedy ktory ktora byl przez od",                                                  // Polish
	"se na je ze jak kdo kde kdy ktery ktera byl jsou pro od po",                                                             // Czech
	"ja on ei se etta oli mika kuka missa milloin mita joka ovat myos",                                                       // Finnish
	"az es hogy nem egy volt mi ki hol mikor milyen melyik van is",                                                           // Hungarian
	"ve bir bu da de icin ile ne kim nerede nasil hangi kac olarak olan",                                                     // Turkish
	"si de la cu nu este in pe care un ce cine unde cand cat din sau au fost",                                                // Romanian
)

// isForeign reports whether the words are of a text in another language than
// English that is written in Latin letters: one in ten is a function word of
// such a language, and English has fewer.
func isForeign(words []word) bool {
	latin, foreign, english := 0, 0, 0
	for _, w := range words {
		if w.kind != kindLatin {
			continue
		}
		latin++
		if function[w.text] {
			foreign++
		}
		if stop[w.text] {
			english++
		}
	}
	return foreign > english && foreign*10 >= latin
}

// set returns the words of space-separated lists.
func set(lists ...string) map[string]bool {
	m := make(map[string]bool)
	for _, list := range lists {
		for _, w := range strings.Fields(list) {
			m[w] = true
		}
	}
	return m
}

// Unstemmed reports whether a text seems to have words that no store stems: of
// another alphabet than Latin, or of a language other than English, which an
// accent tells in a short one. Scripts written without spaces have no such words.
func Unstemmed(text string) bool {
	words := scan(text)
	return isForeign(words) || slices.ContainsFunc(words, func(w word) bool { return w.kind == kindAlien }) ||
		strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII && unicode.Is(unicode.Latin, r) })
}
