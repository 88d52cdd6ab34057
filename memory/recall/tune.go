package recall

import "time"

type TuneT struct {
	MaxPiece, MinPiece, MaxSitting  int
	Pause                           time.Duration
	K1, B                           float64
	Prev, Next, Sitting             float64
	Prev2, Next2                    float64
	Named, Timed, LongFrom, LongPow float64
	FbDocs, FbTerms                 int
	FbWeight                        float64
	Date                            float64
	Standing, StandingShare         float64
	Density                         float64
	User, Floor, Near               float64
	Window, SecondSpeaker           float64
	AnswerBoost                     float64
}

var Tune = TuneT{MaxPiece: 1200, MinPiece: 600, MaxSitting: 40, Pause: 3 * time.Hour,
	K1: 1.2, B: .55, Prev: .3, Next: .15, Sitting: .3, Named: 1.8, Timed: 1.3, LongFrom: 60, LongPow: .5,
	FbDocs: 5, FbTerms: 10, FbWeight: .2, Date: 1, Standing: 500, StandingShare: .15, Near: .2}
