package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// bookmarkInterval is the time between bookmarks.
const bookmarkInterval = 500 * time.Millisecond

// stream is a watch.
type stream struct {
	server *server
	ctx    context.Context
	ended  chan string // receives the event that ends the watch
	// sent is the revision up to which changes have been sent. -1 begins with the objects of the watch cache.
	sent int64
	// required is the revision of the watch cache at the end of the initial events, 0 for a watch without this end.
	required int64
	hasBegun bool
}

// newStream returns the stream of a request. A WatchList without a resourceVersion is consistent.
func newStream(s *server, r *http.Request, isWatchList bool) *stream {
	st := &stream{server: s, ctx: r.Context(), ended: make(chan string, 1)}
	st.sent, _ = strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	if isWatchList {
		st.required = st.sent
		if st.sent == 0 {
			st.required = s.world.now()
		}
	}
	if isWatchList || st.sent == 0 {
		st.sent = -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st.ended] = true
	return st
}

func (s *stream) serve(w http.ResponseWriter) {
	defer s.server.set(func() { delete(s.server.streams, s.ended) })
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	isBookmarkDue := false
	for {
		_, _, changed := s.server.world.snapshot()
		events, isEnd := s.next(isBookmarkDue)
		if _, err := io.WriteString(w, events); err != nil || flush.Flush() != nil || isEnd {
			return
		}
		isBookmarkDue = false
		select {
		case <-changed:
		case last := <-s.ended:
			_, _ = io.WriteString(w, last)
			return
		case <-bookmarks.C:
			isBookmarkDue = true
		case <-s.ctx.Done():
			return
		}
	}
}

// next returns the events up to the revision of the watch cache, and whether the stream ends with them.
func (s *stream) next(isBookmarkDue bool) (events string, isEnd bool) {
	changes, revision := s.server.cache()
	hasExpired := !s.hasBegun && s.server.hasExpired(s.sent)
	s.hasBegun = true
	if hasExpired {
		return event("ERROR", status(http.StatusGone, "Expired", fmt.Sprintf("too old resource version: %d (%d)", s.sent, revision))), true
	}
	if revision < s.required {
		return "", false
	}
	if s.sent < 0 {
		for _, c := range sorted(stateAt(changes, revision)) {
			events += event("ADDED", s.server.object(c))
		}
	} else {
		for _, c := range changes {
			if c.revision > s.sent {
				events += event(eventType(c), s.server.object(c))
			}
		}
	}
	isInitialEnd := s.sent < 0 && s.required > 0
	s.sent = max(s.sent, revision)
	if isInitialEnd || isBookmarkDue && !s.server.lacksBookmarks() {
		events += s.server.bookmark(s.sent, isInitialEnd)
	}
	return events, false
}

func eventType(c change) string {
	switch {
	case c.isDeleted:
		return "DELETED"
	case c.isCreated:
		return "ADDED"
	default:
		return "MODIFIED"
	}
}

// hasExpired reports whether a watch cannot begin at a revision.
func (s *server) hasExpired(revision int64) bool {
	changes, _, _ := s.world.snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.oldest
	if s.window > 0 && int64(len(changes)) > s.window {
		oldest = max(oldest, changes[int64(len(changes))-s.window].revision)
	}
	return revision >= 0 && revision < oldest
}

func (s *server) lacksBookmarks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isQuiet
}
