package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/anykind/anykind/dev/peers/observe"
)

// tooLarge is issue 91073, and without the error's cause 94316: a client has received the revision of etcd, and relists at a server
// whose watch cache has only the revision of its last change.
func tooLarge(t *trial, noCause bool) (string, error) {
	quiet, err := beginAhead(t, noCause)
	if err != nil {
		return "", err
	}
	quiet.set(func() {
		quiet.nextWatch = func(w http.ResponseWriter, _ *http.Request) {
			respond(w, http.StatusInternalServerError, status(http.StatusInternalServerError, "InternalError", ""))
		}
	})
	t.front.use(quiet)
	if err := t.await("the failed watch", patience, func() bool { return quiet.isWatched() }); err != nil {
		return "", err
	}
	isWatched := t.await("a watch", patience, func() bool { return quiet.open() > 0 }) == nil
	if !isWatched {
		_, rejected := t.front.counts()
		return fmt.Sprintf("no watch after %d rejected lists", rejected), nil
	}
	return "", nil
}

// isWatched reports whether the response of nextWatch was sent.
func (s *server) isWatched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextWatch == nil
}

// beginAhead starts an observer, and lets it receive a revision not yet reached by the returned server.
func beginAhead(t *trial, noCause bool) (quiet *server, err error) {
	t.server.noWatchList = true
	if err := t.begin(observe.Options{}); err != nil {
		return nil, err
	}
	t.world.advance(50)
	time.Sleep(2 * bookmarkInterval)
	quiet = newServer(t.world, t.server.kind)
	quiet.isQuiet = true
	quiet.noWatchList = true
	quiet.noCause = noCause
	return quiet, nil
}

// rejectedAtReconnects is issue 107133.
func rejectedAtReconnects(t *trial) (string, error) {
	quiet, err := beginAhead(t, false)
	if err != nil {
		return "", err
	}
	const reconnections = 4
	t.front.use(quiet)
	for range reconnections {
		isWatched := t.watched() == nil
		if !isWatched {
			_, rejected := t.front.counts()
			return fmt.Sprintf("no watch after %d rejected lists", rejected), nil
		}
		t.front.interrupt("", func() {}) // in the first second of the watch
	}
	if err := t.watched(); err != nil {
		return "", err
	}
	if _, rejected := t.front.counts(); rejected >= reconnections-1 {
		return fmt.Sprintf("%d lists were rejected in %d reconnections", rejected, reconnections), nil
	}
	return "", nil
}

// windowTooSmall is issue 102718.
func windowTooSmall(t *trial) (string, error) {
	t.server.listTime = 300 * time.Millisecond
	t.server.window = 3
	t.world.put(names(5)...)
	writing := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		for {
			select {
			case <-writing:
				return
			case <-time.After(20 * time.Millisecond):
				t.world.put("busy")
			}
		}
	}()
	defer func() { <-written }()
	defer close(writing)
	if err := t.start(observe.Options{}); err != nil {
		return "", err
	}
	time.Sleep(8 * time.Second)
	if lists, _ := t.front.counts(); lists > 2 {
		return fmt.Sprintf("%d lists in 8 seconds", lists), nil
	}
	return "", nil
}

// watchListDiffers is issue 121363.
func watchListDiffers(t *trial) (string, error) {
	t.world.put("ghost")
	t.world.delete("ghost")
	t.server.lost[t.world.now()] = true
	t.world.put(names(3)...)
	if err := t.start(observe.Options{}); err != nil {
		return "", err
	}
	if err := t.await("synced", patience, func() bool { return t.has(observe.Synced, "") }); err != nil {
		return "", err
	}
	t.settle()
	return t.violated(lasting), nil
}

// deletionLost is issue 123072.
func deletionLost(t *trial) (string, error) {
	if err := t.begin(observe.Options{}); err != nil {
		return "", err
	}
	t.server.set(func() { t.server.lost[t.world.now()+1] = true })
	t.world.delete("object-001")
	t.world.put("new")
	if err := t.await("the next change", patience, func() bool { return t.has(observe.Added, "new") }); err != nil {
		return "", err
	}
	t.front.use(newServer(t.world, t.server.kind))
	t.settle()
	return t.violated(lasting), nil
}

// cutInFrame is issue 129683.
func cutInFrame(t *trial) (string, error) {
	if err := t.begin(observe.Options{Protobuf: true}); err != nil {
		return "", err
	}
	time.Sleep(1200 * time.Millisecond) // client-go handles the end of a watch in its first second as an error
	before, _ := t.front.counts()
	t.front.interrupt("", func() {
		t.server.set(func() { t.server.nextWatch = partialFrame })
	})
	if err := t.await("the broken watch", patience, t.server.isWatched); err != nil {
		return "", err
	}
	t.world.put("new")
	t.settle()
	if lists, _ := t.front.counts(); lists > before {
		return fmt.Sprintf("%d lists after a broken watch", lists-before), nil
	}
	return t.violated(lasting), nil
}

// partialFrame sends the begin of an event of 4 kB, and breaks the connection some seconds later: clients handle a watch of less
// than a second differently.
func partialFrame(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	_, _ = w.Write([]byte{0, 0, 16, 0, 10, 5, 'A', 'D'})
	_ = http.NewResponseController(w).Flush()
	select {
	case <-time.After(1500 * time.Millisecond):
	case <-r.Context().Done():
	}
	panic(http.ErrAbortHandler)
}

// readerInStore is issue 130767.
func readerInStore(t *trial) (string, error) {
	if err := t.begin(observe.Options{}); err != nil {
		return "", err
	}
	t.send(observe.Block)
	if t.observer.mode != "follow" {
		if err := t.await("the reader", patience, func() bool { return t.has(observe.Blocked, "") }); err != nil {
			return "", err
		}
	}
	t.world.put("new")
	_ = t.await("the change", 3*time.Second, t.delivered)
	shown := t.violated(lasting)
	t.send(observe.Release)
	return shown, t.await("the change without the reader", patience, t.delivered)
}

// noInitialEnd is issue 135895.
func noInitialEnd(t *trial) (string, error) {
	t.server.noInitialEnd = true
	t.server.isQuiet = true
	t.world.put(names(3)...)
	if err := t.start(observe.Options{}); err != nil {
		return "", err
	}
	isSynced := t.await("synced", 25*time.Second, func() bool { return t.has(observe.Synced, "") }) == nil
	if !isSynced {
		return "not synced", nil
	}
	t.settle()
	return t.violated(lasting), nil
}
