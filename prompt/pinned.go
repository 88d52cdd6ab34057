package prompt

import "strings"

// Pinned reports whether a text of the user holds an instruction or a preference
// that always holds.
func Pinned(text string) bool {
	text = strings.ToLower(text)
	for _, w := range wishes {
		if strings.Contains(text, w) {
			return true
		}
	}
	for {
		text = strings.TrimLeft(text, " \n\t")
		for _, o := range orders {
			if strings.HasPrefix(text, o) {
				return true
			}
		}
		i := strings.IndexAny(text, ".!?\n。！？")
		if i < 0 {
			return false
		}
		text = strings.TrimLeft(text[i:], ".!?\n。！？")
	}
}

// The beginnings of sentences that tell how things are to be done from then on,
// and what says so anywhere.
var (
	orders = []string{"always ", "never ", "please always ", "please never ", "from now on", "don't ever ", "do not ever ",
		"immer ", "bitte immer ", "ab jetzt ", "toujours ", "désormais", "siempre ", "nunca ", "以后", "总是", "请始终", "今後", "всегда "}
	wishes = []string{"i prefer ", "i'd prefer ", "i would prefer ", "i always prefer ", "i really prefer ",
		"ich bevorzuge ", "je préfère ", "prefiero ", "我更喜欢", "我喜欢你"}
)
