package recall

import (
	"strings"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// The lists are short on purpose: a word that is missing costs a nuance, never
// a match. They are spelt as terms.Of leaves words.

// timeWords holds words that name a time; numbers do as well.
var timeWords = set("yesterday today tonight tomorrow ago last next since week weekend month year years recently",
	"monday tuesday wednesday thursday friday saturday sunday",
	"january february march april june july august september october november december",
	"gestern heute morgen woche monat jahr montag dienstag mittwoch donnerstag freitag samstag sonntag",
	"hier aujourd demain semaine mois lundi mardi mercredi jeudi vendredi samedi dimanche",
	"ayer hoy manana semana mes ano lunes martes miercoles jueves viernes sabado domingo",
	"昨天 今天 明天 去年 今年 星期 昨日 今日 明日 вчера сегодня завтра")

// isTime reports whether a word names a time.
func isTime(w string) bool { return w[0] >= '0' && w[0] <= '9' || timeWords[w] }

// smallTalk holds what is said to keep a conversation going, and is about
// nothing that was said before.
var smallTalk = set("thanks thank thx ok okay yes yeah yep nope sure great good nice cool perfect awesome hello hi hey",
	"bye go continue proceed keep going next more got understood right well wow lol sounds makes sense agree agreed",
	"danke ja nein gut weiter hallo merci oui non bon suite continuez bonjour gracias si bueno vale sigue hola",
	"grazie bene avanti ciao obrigado obrigada sim bom continua bedankt goed спасибо да нет хорошо дальше привет",
	"谢谢 继续 好的 可以 你好 ありがとう はい 続け 감사 계속 네")

// leanHalves is how many words that matter a message has at most that leans on
// what was said last, in halves. One question in thirty about long conversations
// has so few.
const leanHalves = 5

// Leans reports whether a message says so little by itself that it is likely to
// be about what was said last: "make it shorter", "and in French?".
func Leans(text string) bool {
	halves, last := 0, ""
	for _, w := range terms.Query(ends(text)) {
		switch {
		case smallTalk[w], strings.HasPrefix(last, w): // a word's beginning is a term, too
		case len(w) >= 6 && utf8.RuneCountInString(w) == 2: // a pair of Chinese characters, say
			halves++
		default:
			halves += 2
		}
		last = w
	}
	return halves <= leanHalves
}

// asks holds words that ask for a time.
var asks = set("when wann quand cuando quando когда 么时 何时 いつ 언제")

// asksWhen reports whether the words of a query ask for a time.
func asksWhen(words []string) bool {
	for i, w := range words {
		switch {
		case asks[w]:
			return true
		case i == 0:
		case w == "long" && words[i-1] == "how":
			return true
		case w == "date" || w == "day" || w == "month" || w == "year" || w == "time":
			if words[i-1] == "what" || words[i-1] == "which" {
				return true
			}
		}
	}
	return false
}

// Words that, ahead of "you", or after "you" or "your", ask for something that
// the assistant said, and the like in German and French.
var (
	beforeYou = set("did had have that what which")
	afterYou  = set("said told gave recommended suggested mentioned wrote listed explained proposed advised described showed called named answered")
	afterYour = set("advice answer answers suggestion suggestions recommendation recommendations list plan reply explanation idea ideas example proposal")
	besideDu  = map[string]map[string]bool{
		"du": set("hast hattest"), "sie": set("haben hatten"), "tu": set("as avais"), "vous": set("avez aviez"),
	}
)

// asksWhatYouSaid reports whether the words of a query ask for something that
// the assistant said: "what did you recommend", "your last suggestion", "hast du
// gesagt", "vous avez dit".
func asksWhatYouSaid(words []string) bool {
	at := func(i int) string {
		if i < 0 || i >= len(words) {
			return ""
		}
		return words[i]
	}
	for i, w := range words {
		switch before, after := at(i-1), at(i+1); {
		case w == "you" && (beforeYou[before] || afterYou[after]),
			w == "your" && (afterYour[after] || afterYour[at(i+2)]),
			besideDu[w][before], besideDu[w][after]:
			return true
		}
	}
	return false
}

// The beginnings of sentences that tell how things are to be done from then on,
// and what says so anywhere.
var (
	orders = []string{"always ", "never ", "please always ", "please never ", "from now on", "don't ever ", "do not ever ",
		"immer ", "bitte immer ", "ab jetzt ", "toujours ", "désormais", "siempre ", "nunca ", "以后", "总是", "请始终", "今後", "всегда "}
	wishes = []string{"i prefer ", "i'd prefer ", "i would prefer ", "i always prefer ", "i really prefer ",
		"ich bevorzuge ", "je préfère ", "prefiero ", "我更喜欢", "我喜欢你"}
)

// isStanding reports whether a text of the user holds a standing instruction or
// a preference.
func isStanding(text string) bool {
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

// set returns the words of space-separated lists.
func set(lists ...string) map[string]bool {
	m := make(map[string]bool)
	for _, l := range lists {
		for _, w := range strings.Fields(l) {
			m[w] = true
		}
	}
	return m
}
