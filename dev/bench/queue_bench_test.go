package bench

import (
	"strconv"
	"sync"
	"testing"
	"time"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/anykind/anykind/controller/workqueue"
)

// workQueue is the interface of both queues; get returns false once the queue is shut down.
type workQueue interface {
	add(key string)
	addAfter(key string, delay time.Duration)
	get() (string, bool)
	done(key string)
	end()
}

type anykindQueue struct {
	*workqueue.Queue[string]
	b *testing.B
}

func (q anykindQueue) add(key string)                       { q.Add(key) }
func (q anykindQueue) addAfter(key string, d time.Duration) { q.AddAfter(key, d) }
func (q anykindQueue) get() (string, bool)                  { return q.Get(q.b.Context()) }
func (q anykindQueue) done(key string)                      { q.Done(key) }
func (q anykindQueue) end()                                 { q.ShutDown() }

type clientGoQueue struct {
	clientgo.TypedRateLimitingInterface[string]
}

func (q clientGoQueue) add(key string)                       { q.Add(key) }
func (q clientGoQueue) addAfter(key string, d time.Duration) { q.AddAfter(key, d) }
func (q clientGoQueue) get() (string, bool)                  { key, down := q.Get(); return key, !down }
func (q clientGoQueue) done(key string)                      { q.Done(key) }
func (q clientGoQueue) end()                                 { q.ShutDown() }

// BenchmarkQueue compares the work queues with 10,000 keys.
func BenchmarkQueue(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = "namespace-" + strconv.Itoa(i%100) + "/name-" + strconv.Itoa(i)
	}
	makers := []struct {
		name string
		make func(b *testing.B) workQueue
	}{
		{"anykind", func(b *testing.B) workQueue { return anykindQueue{workqueue.New[string](nil), b} }},
		{"client-go", func(*testing.B) workQueue {
			return clientGoQueue{clientgo.NewTypedRateLimitingQueue(clientgo.DefaultTypedControllerRateLimiter[string]())}
		}},
	}
	for _, task := range []struct {
		name string
		run  func(b *testing.B, q workQueue, keys []string)
	}{
		{"one by one", oneByOne}, {"backlog", backlog}, {"parallel", parallel}, {"workers", workers},
		{"added again", addedAgain}, {"AddAfter", addAfter}, {"AddAfter and due", addAfterDue},
	} {
		for _, maker := range makers {
			b.Run(task.name+"/"+maker.name, func(b *testing.B) {
				q := maker.make(b)
				defer q.end()
				b.ReportAllocs()
				task.run(b, q, keys)
			})
		}
	}
}

func oneByOne(b *testing.B, q workQueue, keys []string) {
	for i := 0; b.Loop(); i++ {
		q.add(keys[i%len(keys)])
		key, _ := q.get()
		q.done(key)
	}
}

// backlog adds all keys before the first is processed, as after a list.
func backlog(b *testing.B, q workQueue, keys []string) {
	for b.Loop() {
		for _, key := range keys {
			q.add(key)
		}
		for range keys {
			key, _ := q.get()
			q.done(key)
		}
	}
}

func parallel(b *testing.B, q workQueue, keys []string) {
	var mu sync.Mutex
	next := 0
	b.RunParallel(func(pb *testing.PB) {
		mu.Lock()
		from := next
		next += 1000 // every goroutine has keys of its own, so that each add is one get
		mu.Unlock()
		for i := 0; pb.Next(); i++ {
			q.add(keys[from+i%1000])
			key, _ := q.get()
			q.done(key)
		}
	})
}

// workers runs one producer and eight consumers.
func workers(b *testing.B, q workQueue, keys []string) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for key, ok := q.get(); ok; key, ok = q.get() {
				q.done(key)
			}
		})
	}
	for i := 0; b.Loop(); i++ {
		q.add(keys[i%len(keys)])
	}
	q.end()
	all.Wait()
}

// addedAgain adds keys that are queued already, as a burst of changes does.
func addedAgain(b *testing.B, q workQueue, keys []string) {
	for _, key := range keys {
		q.add(key)
	}
	for i := 0; b.Loop(); i++ {
		q.add(keys[i%len(keys)])
	}
}

func addAfter(b *testing.B, q workQueue, keys []string) {
	for i := 0; b.Loop(); i++ {
		q.addAfter(keys[i%len(keys)], time.Hour+time.Duration(i*7919%3600)*time.Second)
	}
}

// addAfterDue delays all keys and processes them when they are due.
func addAfterDue(b *testing.B, q workQueue, keys []string) {
	for b.Loop() {
		for i, key := range keys {
			q.addAfter(key, time.Duration(i%100)*time.Microsecond)
		}
		for range keys {
			key, _ := q.get()
			q.done(key)
		}
	}
}
