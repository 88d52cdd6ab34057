package terms

// stop holds the English words that say nothing of what a text is about,
// question words among them, and what is left of contractions (don't, we'll).
var stop = set(
	"a an the this that these those such some any each every either neither both all few more most other",
	"another own same no nor not only so than too very just also even still yet again once ever never",
	"i me my mine myself you your yours yourself he him his himself she her hers herself it its itself",
	"we us our ours ourselves they them their theirs themselves one someone something anyone anything",
	"what which who whom whose when where why how whether",
	"am is are was were be been being do does did doing done has have had having",
	"can could may might must shall should will would ought let lets",
	"and or but if then else because as until while though although since unless",
	"of at by for with without about against between among into through during before after above below",
	"to from up down in out on off over under upon within toward towards per via here there now please",
	"s t d m ll re ve don isn aren wasn weren doesn didn hasn haven hadn won wouldn couldn shouldn cannot cant dont",
)

// Stop reports whether a normalised word is an English stop word.
func Stop(word string) bool { return stop[word] }
