package write

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// suffixLetters are those of generated names.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// random makes UIDs and the ends of generated names. With a seed they are the same for the same writes in the same order.
type random struct {
	mu     sync.Mutex
	seeded *rand.Rand // nil without a seed
}

func newRandom(seed uint64) *random {
	r := &random{}
	if seed != 0 {
		r.seeded = rand.New(rand.NewPCG(seed, 1))
	}
	return r
}

func (r *random) uid() types.UID {
	if r.seeded == nil {
		return uuid.NewUUID()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	high, low := r.seeded.Uint64(), r.seeded.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", high>>32, high>>16&0xffff, high&0xfff, low>>48&0xfff, low&0xffffffffffff))
}

func (r *random) suffix(length int) string {
	if r.seeded == nil {
		return utilrand.String(length)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := make([]byte, length)
	for i := range text {
		text[i] = suffixLetters[r.seeded.IntN(len(suffixLetters))]
	}
	return string(text)
}
