// Package parallel calls a function for many items with a bounded number of goroutines.
package parallel

import "sync"

// Do calls work for each index below count, at most workers at a time, and returns after the last call.
func Do(workers, count int, work func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, workers)
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			work(i)
		})
	}
	wg.Wait()
}
