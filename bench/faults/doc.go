// Command faults breaks what Backstory stands on, while clients chat through it,
// and counts what became of their exchanges.
//
// It runs the real program in processes of its own, on the embedded store and on
// real redis-servers, with a model router of its own behind it, and kills, stops,
// fills up and cuts off one thing after the other. Every message and every reply
// carries a name that no other has, so that what is stored at the end says for
// each exchange whether it was kept, once, whole and in its place. An exchange is
// acknowledged when the client has read the end of its reply and nothing in it says
// that it wasn't saved.
//
// With -soak it breaks nothing, and watches the memory, goroutines and descriptors
// of the program under a steady load.
package main
