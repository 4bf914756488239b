package history

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

var roles = map[string]Role{
	"follow": Follower, "changes": Consumer, "operator": Operator, "reader": Reader, "snapshot": Snapshot, "writer": Writer, "wait": Waiter,
	"client": Client, "process": Processes,
}

// parse reads a history of events and observations. The time is the number of the event, or a range in front:
//
//	etcd put a 5; follow Added a#uid 5; etcd restore; 12-15 client Update a 7 @5 unknown; settled 5
//
// With a "server ADDED a 5", all observers are in the process with the messages.
func parse(t *testing.T, text string) *History {
	t.Helper()
	r := NewRecorder()
	observers := map[string]*Observer{}
	epochs := []*Epoch{{}}
	settled := int64(0)
	items := strings.Split(text, ";")
	for n, item := range items {
		words := strings.Fields(item)
		o := Observation{Begin: int64(n + 1), End: int64(n + 1)}
		if len(words) > 0 {
			if first, last, isRange := strings.Cut(words[0], "-"); isRange {
				o.Begin = Revision(first)
				o.End = Revision(last)
				words = words[1:]
			}
		}
		switch {
		case len(words) == 0:
		case words[0] == "settled":
			settled = Revision(words[1])
		case words[0] == "server":
			recorded := response{recorder: r, process: 1, request: r.intern("GET /")}
			recorded.add(words[1], Revision(words[3]), words[2])
			r.messages[len(r.messages)-1].At = o.End
		case words[0] == "etcd" && words[1] == "restore":
			epochs = append(epochs, &Epoch{Begin: o.Begin})
		case words[0] == "etcd":
			e := Event{Key: r.intern(words[2]), Revision: Revision(words[3]), At: o.End}
			if words[1] == "put" {
				e.Created = e.Revision
			}
			epochs[len(epochs)-1].Events = append(epochs[len(epochs)-1].Events, e)
		default:
			role, isRole := roles[strings.TrimRight(words[0], "0123456789")]
			require.True(t, isRole, item)
			if observers[words[0]] == nil {
				observers[words[0]] = r.Observer(role, words[0], "", "")
			}
			note(observers[words[0]], words[1:], o)
		}
	}
	h := r.History(epochs)
	for _, observer := range h.Observers {
		observer.Process = uint8(min(1, len(h.Messages)))
	}
	if settled != 0 {
		h.Settle(int64(len(items)+1), settled)
	}
	return h
}

// note adds an observation from the words of its kind, key with uid, revision, precondition and outcome.
func note(observer *Observer, words []string, o Observation) {
	o.Kind = Kind(slices.Index(kindNames[:], words[0]))
	var name, uid string
	for _, word := range words[1:] {
		switch _, err := strconv.Atoi(word); {
		case err == nil:
			o.Revision = Revision(word)
		case word[0] == '@':
			o.Expected = Revision(word[1:])
		case word == "rejected":
			o.Outcome = Rejected
		case word == "unknown":
			o.Outcome = Unknown
		default:
			name, uid, _ = strings.Cut(word, "#")
		}
	}
	observer.Note(name, types.UID(uid), o)
}

type testCase struct{ name, history string }

// assertProperty checks that the passing histories have no violation of any property, and each other one a single violation of the
// property.
func assertProperty(t *testing.T, property func(*History) []Violation, passing, violating []testCase) {
	t.Helper()
	for _, c := range passing {
		assert.Empty(t, parse(t, c.history).Check(), c.name)
	}
	for _, c := range violating {
		found := property(parse(t, c.history))
		if assert.Len(t, found, 1, c.name) {
			assert.NotEmpty(t, found[0].Around, c.name)
		}
	}
}

func TestProperties_NamesAndRoles(t *testing.T) {
	names := map[string]bool{}
	for _, property := range Properties() {
		assert.False(t, names[property.Name], property.Name)
		names[property.Name] = true
	}
	assert.Len(t, kindNames, int(Settled)+1)
}

func TestViolation_HasHistoryAround(t *testing.T) {
	h := parse(t, `etcd put a 5; etcd put a 7; follow Added a#1 7; follow2 Added a#1 7; follow Modified a#1 5`)
	found := h.Check()
	require.Len(t, found, 1)
	assert.Equal(t, `no version goes back: follow: a: revision 5 after 7
	0.000000s follow Added a uid 1 revision 7
	0.000000s follow Modified a uid 1 revision 5
	etcd, epoch 0: put at 5
	etcd, epoch 0: put at 7`, found[0].String())
}

func TestRecorder_ConcurrentObservers(t *testing.T) {
	r := NewRecorder()
	done := make(chan struct{})
	for n := range 4 {
		go func() {
			o := r.Observer(Reader, strconv.Itoa(n), "/", "")
			for i := range chunkSize {
				o.Note("a", "1", Observation{Kind: Read, Revision: int64(i + 1)})
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		<-done
	}
	assert.Equal(t, 4*chunkSize, r.Count())
	h := r.History([]*Epoch{{}})
	require.Len(t, h.Observations, 4*chunkSize)
	assert.True(t, slices.IsSortedFunc(h.Observations, func(a, b Observation) int { return int(a.End - b.End) }))
	assert.Len(t, h.texts, 3, "each string once")
	assert.Empty(t, h.Check())
}
