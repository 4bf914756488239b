package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// slowObject takes a second to encode.
type slowObject struct{}

func (*slowObject) MarshalJSON() ([]byte, error) {
	time.Sleep(time.Second)
	return []byte("{}"), nil
}

func TestMutationDetector_SlowComparisonsLeaveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &mutationDetector[slowObject]{objects: map[Key]snapshot[slowObject]{}}
		for _, name := range []string{"a", "b", "c"} {
			d.put(Key{Name: name}, &slowObject{})
		}
		start, checks := time.Now(), 0
		for range 600 {
			time.Sleep(time.Second) // until the next event
			before := time.Now()
			assert.False(t, d.check())
			if time.Since(before) > 0 {
				checks++
			}
		}
		assert.Equal(t, 10, checks)
		assert.Equal(t, 630*time.Second, time.Since(start))
	})
}
