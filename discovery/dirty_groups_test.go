package discovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDirtyGroups_ChecksAgainAfterChange(t *testing.T) {
	start := time.Now()
	dirty := newDirtyGroups(start)
	assert.Equal(t, resyncInterval, dirty.delay(start))
	dirty.mark("shop", start)
	for _, want := range groupCheckTimes {
		now := start.Add(dirty.delay(start))
		assert.Equal(t, want, now.Sub(start))
		assert.Equal(t, []string{"shop"}, dirty.next(now))
	}
	now := start.Add(dirty.delay(start))
	assert.Equal(t, settleDelay, now.Sub(start))
	assert.Equal(t, []string{allGroups}, dirty.next(now))
	assert.GreaterOrEqual(t, dirty.delay(now), resyncInterval)
}

func TestDirtyGroups_BusyGroupIsNotPostponed(t *testing.T) {
	start := time.Now()
	dirty := newDirtyGroups(start)
	dirty.mark("shop", start)
	dirty.mark("shop", start.Add(10*time.Millisecond))
	assert.Equal(t, []string{"shop"}, dirty.next(start.Add(groupCheckTimes[0])))
}
