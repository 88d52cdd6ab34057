package recall

import "strings"

// The lists are short on purpose: a missing word costs a nuance, never a match. Words
// are spelt as terms.Of returns them.

// timeWords holds words that name a time, besides numbers.
var timeWords = set("yesterday today tonight tomorrow ago last next since week weekend month year years recently",
	"monday tuesday wednesday thursday friday saturday sunday",
	"january february march april june july august september october november december",
	"gestern heute morgen woche monat jahr montag dienstag mittwoch donnerstag freitag samstag sonntag",
	"hier aujourd demain semaine mois lundi mardi mercredi jeudi vendredi samedi dimanche",
	"ayer hoy manana semana mes ano lunes martes miercoles jueves viernes sabado domingo",
	"昨天 今天 明天 去年 今年 星期 昨日 今日 明日 вчера сегодня завтра")

// isTime reports whether a word names a time.
func isTime(w string) bool { return w[0] >= '0' && w[0] <= '9' || timeWords[w] }

// whenWords holds words that ask for a time.
var whenWords = set("when wann quand cuando quando когда 么时 何时 いつ 언제")

// asksWhen reports whether the words of a query ask for a time.
func asksWhen(words []string) bool {
	for i, w := range words {
		switch {
		case whenWords[w]:
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

// Words that ask for something that the assistant said if they stand before "you", or
// after "you" or "your"; and their counterparts in German and French.
var (
	beforeYou = set("did had have that what which")
	afterYou  = set("said told gave recommended suggested mentioned wrote listed explained proposed advised described showed called named answered")
	afterYour = set("advice answer answers suggestion suggestions recommendation recommendations list plan reply explanation idea ideas example proposal")
	besideDu  = map[string]map[string]bool{
		"du": set("hast hattest"), "sie": set("haben hatten"), "tu": set("as avais"), "vous": set("avez aviez"),
	}
)

// asksWhatAssistantSaid reports whether the words of a query ask for something that
// the assistant said: "what did you recommend", "your last suggestion", "hast du
// gesagt", "vous avez dit".
func asksWhatAssistantSaid(words []string) bool {
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
