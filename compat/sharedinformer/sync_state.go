package sharedinformer

import (
	"reflect"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// client-go 0.36 added the method HasSyncedChecker to its interfaces, with a result type that older versions lack. A
// DeltaFIFO has the method in the versions whose interfaces have it. So each syncState embeds an empty DeltaFIFO, which is in
// sync from its first Replace on.

// registration is the interface with HasSynced and, from client-go 0.36 on, HasSyncedChecker.
type registration = toolscache.ResourceEventHandlerRegistration

// syncState reports whether an informer or a handler has synced.
type syncState struct {
	registration // the queue
	queue        *toolscache.DeltaFIFO
	synced       chan struct{}
	once         sync.Once
}

// newSyncState returns a state that has not synced. client-go's logs have its name.
func newSyncState(name string) *syncState {
	options := toolscache.DeltaFIFOOptions{}
	if field := reflect.ValueOf(&options).Elem().FieldByName("Name"); field.IsValid() { // from client-go 0.36 on
		field.SetString(name)
	}
	queue := toolscache.NewDeltaFIFOWithOptions(options)
	return &syncState{registration: queue, queue: queue, synced: make(chan struct{})}
}

// setSynced ends the initial sync.
func (s *syncState) setSynced() {
	s.once.Do(func() {
		_ = s.queue.Replace(nil, "") // of an empty queue, which cannot fail
		close(s.synced)
	})
}

// Synced returns a channel that is closed when HasSynced becomes true.
func (s *syncState) Synced() <-chan struct{} { return s.synced }
