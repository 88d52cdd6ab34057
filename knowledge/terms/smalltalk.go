package terms

// SmallTalk holds what is said to keep a conversation going, and is about
// nothing that was said before.
var SmallTalk = set("thanks thank thx ok okay yes yeah yep nope sure great good nice cool perfect awesome hello hi hey",
	"bye go continue proceed keep going next more got understood right well wow lol sounds makes sense agree agreed",
	"danke ja nein gut weiter hallo merci oui non bon suite continuez bonjour gracias si bueno vale sigue hola",
	"grazie bene avanti ciao obrigado obrigada sim bom continua bedankt goed спасибо да нет хорошо дальше привет",
	"谢谢 继续 好的 可以 你好 ありがとう はい 続け 감사 계속 네")
