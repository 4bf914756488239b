package sharedinformer

import (
	"reflect"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// client-go 0.36 added the method HasSyncedChecker to its interfaces. Older versions lack its result type. In every version,
// DeltaFIFO has the methods that the interfaces require. So each syncState embeds an empty DeltaFIFO, which is synced after its
// first Replace.

// registration is the interface with HasSynced and, from client-go 0.36 on, HasSyncedChecker.
type registration = toolscache.ResourceEventHandlerRegistration

// syncState reports whether an informer or a handler has synced.
type syncState struct {
	registration // the queue
	queue        *toolscache.DeltaFIFO
	synced       chan struct{}
	once         sync.Once
}

// newSyncState returns an unsynced state. name is for client-go's logs.
func newSyncState(name string) *syncState {
	options := toolscache.DeltaFIFOOptions{}
	if field := reflect.ValueOf(&options).Elem().FieldByName("Name"); field.IsValid() { // from client-go 0.36 on
		field.SetString(name)
	}
	queue := toolscache.NewDeltaFIFOWithOptions(options)
	return &syncState{registration: queue, queue: queue, synced: make(chan struct{})}
}

// setSynced marks the state as synced.
func (s *syncState) setSynced() {
	s.once.Do(func() {
		_ = s.queue.Replace(nil, "") // the queue is empty, so it cannot fail
		close(s.synced)
	})
}

// Synced returns a channel that is closed when HasSynced becomes true.
func (s *syncState) Synced() <-chan struct{} { return s.synced }
