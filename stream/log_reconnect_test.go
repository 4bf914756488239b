package stream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/stream"
)

// logServer scripts the responses about one pod, web-0 with the container app, and its log.
type logServer struct {
	restarts atomic.Int64
	finished atomic.Pointer[time.Time] // of the run before
	gone     atomic.Bool               // the pod was deleted
	denied   atomic.Bool               // as a starting server denies everything
	requests atomic.Int64              // for the log
	log      func(n int64, w http.ResponseWriter, r *http.Request)
}

func (s *logServer) pod() string {
	last := ""
	if finished := s.finished.Load(); finished != nil {
		last = fmt.Sprintf(`"terminated":{"finishedAt":%q}`, finished.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf(`{"metadata":{"name":"web-0","namespace":"shop","uid":"u"},"spec":{"containers":[{"name":"app"}]},"status":{"phase":"Running",`+
		`"containerStatuses":[{"name":"app","restartCount":%d,"state":{"running":{}},"lastState":{%s}}]}}`, s.restarts.Load(), last)
}

func (s *logServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w).Flush
	switch {
	case s.denied.Load():
		reject(w, 403, "Forbidden", "starting")
	case strings.HasSuffix(r.URL.Path, "/log"):
		s.log(s.requests.Add(1), w, r)
	case strings.HasSuffix(r.URL.Path, "/pods") && r.FormValue("watch") == "":
		items := s.pod()
		if s.gone.Load() {
			items = ""
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1"},"items":[%s]}`, items)
	case strings.HasSuffix(r.URL.Path, "/pods"):
		_ = flush()
		for seen := s.restarts.Load(); r.Context().Err() == nil && !s.denied.Load(); time.Sleep(10 * time.Millisecond) {
			if s.gone.Load() {
				_, _ = fmt.Fprintf(w, `{"type":"DELETED","object":%s}`+"\n", s.pod())
				_ = flush()
				<-r.Context().Done()
			}
			if now := s.restarts.Load(); now != seen {
				seen = now
				_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", s.pod())
				_ = flush()
			}
		}
	case s.gone.Load():
		reject(w, 404, "NotFound", "no such pod")
	default:
		_, _ = io.WriteString(w, s.pod())
	}
}

// send writes lines of the log with the time now.
func (s *logServer) send(w http.ResponseWriter, texts ...string) {
	s.sendAt(w, time.Now(), texts...)
}

func (*logServer) sendAt(w http.ResponseWriter, at time.Time, texts ...string) {
	for _, text := range texts {
		_, _ = fmt.Fprintf(w, "%s %s\n", at.UTC().Format(stampFormat), text)
	}
	_ = http.NewResponseController(w).Flush()
}

// hold keeps a connection open until the client closes it.
func hold(r *http.Request) { <-r.Context().Done() }

const kubeletError = "failed to try resolving symlinks in path \"/var/log/pods/x/0.log\": no such file or directory\n"

func TestLogs_FollowBacksOffWithoutNewLines(t *testing.T) {
	for name, c := range map[string]struct {
		respond func(s *logServer, n int64, w http.ResponseWriter)
		most    int64
		want    string
	}{
		"an error of the node": {func(_ *logServer, _ int64, w http.ResponseWriter) { _, _ = io.WriteString(w, kubeletError) }, 20, kubeletError},
		"nothing":              {func(*logServer, int64, http.ResponseWriter) {}, 20, ""},
		"a line each time":     {func(s *logServer, n int64, w http.ResponseWriter) { s.send(w, "line") }, 700, strings.Repeat("line\n", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lines := range []bool{false, true} {
				s := &logServer{}
				s.log = func(n int64, w http.ResponseWriter, _ *http.Request) { c.respond(s, n, w) }
				serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					text, err := followed(ctx, pods, lines)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					assert.LessOrEqual(t, s.requests.Load(), c.most)
					assert.GreaterOrEqual(t, s.requests.Load(), int64(5))
					assert.True(t, strings.HasPrefix(text, c.want) && (len(text) == len(c.want) || c.most > 20), "%.200q", text)
				})
			}
		})
	}
}

// followed reads the log of app in web-0, by Logs or LogLines, to the first error.
func followed(ctx context.Context, pods pods, lines bool) (string, error) {
	if lines {
		var text strings.Builder
		for line, err := range stream.LogLines(ctx, pods, &stream.LogOptions{Follow: true}) {
			if err != nil {
				return text.String(), err
			}
			text.WriteString(line.Text + "\n")
		}
		return text.String(), nil
	}
	log, err := stream.Logs(ctx, pods, "web-0", &stream.LogOptions{Follow: true})
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	return string(text), err
}

func TestLogLines_StaleRestartCountRepeatsNoLine(t *testing.T) {
	s := &logServer{}
	begun := make(chan time.Time, 1)
	s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			begun <- time.Now()
		}
		at := <-begun
		begun <- at
		switch {
		case r.FormValue("previous") != "" || n == 1:
			s.sendAt(w, at, "run 0")
			time.Sleep(2 * time.Second)
		case n == 2: // the node has begun run 1, and the API server does not know
			s.sendAt(w, at.Add(2*time.Second), "run 1, first", "run 1, second")
			time.Sleep(300 * time.Millisecond)
			s.restarts.Store(1)
			time.Sleep(time.Second)
		default:
			s.sendAt(w, at.Add(2*time.Second), "run 1, first", "run 1, second")
			s.sendAt(w, at.Add(4*time.Second), "run 1, third")
			hold(r)
		}
	}
	serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		text, err := followed(ctx, pods, true)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, "run 0\nrun 1, first\nrun 1, second\nrun 1, third\n", text)
	})
}

func TestLogs_RestartBeforeOpeningLosesNoLine(t *testing.T) {
	for name, lag := range map[string]time.Duration{"known at once": 0, "known later": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := &logServer{}
			s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
				switch {
				case r.FormValue("previous") != "":
				case n == 1: // the container was restarted after it was looked at
					finished := time.Now().Add(-2 * time.Second)
					s.finished.Store(&finished)
					time.AfterFunc(lag, func() { s.restarts.Store(1) })
					s.send(w, "first")
					time.Sleep(10 * time.Second)
					panic(http.ErrAbortHandler)
				default:
					s.send(w, "second")
					hold(r)
				}
			}
			serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				text, err := followed(ctx, pods, false)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, "first\nsecond\n", text)
			})
		})
	}
}

func TestLogs_SurviveClockJump(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a year": 365 * 24 * time.Hour, "ten seconds": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := &logServer{}
			var kept []string // as the node has them
			s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
				since, _ := time.Parse(time.RFC3339, r.FormValue("sinceTime"))
				line := func(at time.Time, text string) { kept = append(kept, at.UTC().Format(stampFormat)+" "+text+"\n") }
				switch n {
				case 1:
					line(time.Now(), "before")
					line(time.Now().Add(ahead), "ahead")
					line(time.Now().Add(ahead), "still ahead")
				case 2:
					line(time.Now(), "after")
				case 3:
					line(time.Now(), "and after")
				}
				for _, line := range kept {
					if at, _ := time.Parse(stampFormat, line[:strings.IndexByte(line, ' ')]); !at.Before(since) {
						_, _ = io.WriteString(w, line)
					}
				}
				_ = http.NewResponseController(w).Flush()
				if n == 3 {
					hold(r)
				}
				time.Sleep(3 * time.Second)
				panic(http.ErrAbortHandler)
			}
			serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				text, err := followed(ctx, pods, false)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, "before\nahead\nstill ahead\nafter\nand after\n", text)
			})
		})
	}
}

func TestLogs_SurviveStartingServer(t *testing.T) {
	for _, lines := range []bool{false, true} {
		for _, well := range []bool{false, true} {
			t.Run(fmt.Sprintf("lines %v, ended well %v", lines, well), func(t *testing.T) {
				s := &logServer{}
				s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
					s.send(w, fmt.Sprint("connection ", n))
					if n > 1 {
						hold(r)
					}
					time.Sleep(time.Minute)
					s.denied.Store(true)
					time.AfterFunc(time.Second, func() { s.denied.Store(false) })
					if !well {
						panic(http.ErrAbortHandler)
					}
				}
				serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					defer cancel()
					text, err := followed(ctx, pods, lines)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					assert.Equal(t, "connection 1\nconnection 2\n", text)
				})
			})
		}
	}
}

// rejectOfNode is the response of an API server whose node does not know its pods yet.
func rejectOfNode(w http.ResponseWriter) {
	reject(w, 404, "NotFound", "the server could not find the requested resource ( pods/log web-0)")
}

func TestLogs_StartWithStartingNode(t *testing.T) {
	for _, lines := range []bool{false, true} {
		t.Run(fmt.Sprint("lines ", lines), func(t *testing.T) {
			s := &logServer{}
			s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
				if n <= 3 {
					rejectOfNode(w)
					return
				}
				s.send(w, "one")
				hold(r)
			}
			serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				text, err := followed(ctx, pods, lines)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, "one\n", text)
			})
		})
	}
	s := &logServer{log: func(_ int64, w http.ResponseWriter, _ *http.Request) { rejectOfNode(w) }} // of a node that stays away
	serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
		_, err := followed(t.Context(), pods, false)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

func TestLogs_SurviveStartingNode(t *testing.T) {
	for _, lines := range []bool{false, true} {
		for _, well := range []bool{false, true} {
			t.Run(fmt.Sprintf("lines %v, ended well %v", lines, well), func(t *testing.T) {
				s := &logServer{}
				s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
					switch {
					case n == 1:
						s.send(w, "one")
						if !well {
							panic(http.ErrAbortHandler)
						}
					case n <= 10:
						rejectOfNode(w)
					default:
						s.send(w, "two")
						hold(r)
					}
				}
				serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					defer cancel()
					text, err := followed(ctx, pods, lines)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					assert.Equal(t, "one\ntwo\n", text)
				})
			})
		}
	}
}

func TestLogLines_BeginsWithStartingNode(t *testing.T) {
	s := &logServer{}
	s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
		if n <= 10 {
			rejectOfNode(w)
			return
		}
		s.send(w, "text")
		hold(r)
	}
	serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		text, err := followed(ctx, pods, true)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, "text\n", text)
	})
}

func TestLogs_LastingDenialEndsFollowing(t *testing.T) {
	for _, lines := range []bool{false, true} {
		s := &logServer{}
		s.log = func(_ int64, w http.ResponseWriter, _ *http.Request) {
			s.send(w, "text")
			time.Sleep(time.Minute)
			s.denied.Store(true)
		}
		serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
			text, err := followed(t.Context(), pods, lines)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.Equal(t, "text\n", text)
		})
	}
}

func TestLogLines_LostLinesEndNothing(t *testing.T) {
	s := &logServer{}
	s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.FormValue("previous") != "":
			s.send(w, "second run")
			return
		case n > 1:
			s.send(w, "third run")
			hold(r)
		}
		s.send(w, "first run")
		time.Sleep(2 * time.Second)
		s.restarts.Store(2)
		panic(http.ErrAbortHandler)
	}
	serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		text, err := followed(ctx, pods, true)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, `pod "web-0", container "app": unexpected EOF: the connection broke, and later lines are lost`)
		assert.Equal(t, "first run\nsecond run\nthird run\n", text)
	})
}

func TestLogLines_RunsBetweenEvents(t *testing.T) {
	for name, c := range map[string]struct {
		restarts int64
		isGone   bool // the node has no previous log
		want     []string
		lost     string
	}{
		"two restarts":                   {2, false, []string{"0 run 0", "1 previous", "2 current"}, ""},
		"two restarts, previous is gone": {2, true, []string{"0 run 0", "2 current"}, "the node has no log of the run"},
		"five restarts":                  {5, false, []string{"0 run 0", "4 previous", "5 current"}, "the logs of 3 earlier runs are lost"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &logServer{}
			s.log = func(_ int64, w http.ResponseWriter, r *http.Request) {
				switch {
				case r.FormValue("previous") != "" && c.isGone:
					reject(w, 400, "BadRequest", "previous terminated container not found")
				case r.FormValue("previous") != "":
					s.send(w, "previous")
				case s.restarts.Load() == 0:
					s.send(w, "run 0")
					time.Sleep(2 * time.Second)
					s.restarts.Store(c.restarts)
				default:
					s.send(w, "current")
					hold(r)
				}
			}
			serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var lines []string
				var lost []string
				opts := &stream.LogOptions{Follow: true, OnError: func(_ stream.LogSource, err error) {
					assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
					lost = append(lost, err.Error())
				}}
				for line, err := range stream.LogLines(ctx, pods, opts) {
					if err == nil {
						lines = append(lines, fmt.Sprint(line.Restarts, " ", line.Text))
					}
				}
				assert.Equal(t, c.want, lines)
				if c.lost == "" {
					assert.Empty(t, lost)
					return
				}
				require.Len(t, lost, 1)
				assert.Contains(t, lost[0], c.lost)
			})
		})
	}
}

func TestLogLines_RejectedRunIsNotLost(t *testing.T) {
	s := &logServer{}
	s.log = func(n int64, w http.ResponseWriter, r *http.Request) {
		s.send(w, fmt.Sprint("run ", s.restarts.Load()))
		if n == 1 {
			for range 2 {
				time.Sleep(2 * time.Second)
				s.restarts.Add(1)
			}
			return
		}
		hold(r)
	}
	serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		opts := &stream.LogOptions{Follow: true, Filter: func(source stream.LogSource) bool { return source.Restarts != 1 }}
		var texts []string
		for line, err := range stream.LogLines(ctx, pods, opts) {
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
				continue
			}
			texts = append(texts, line.Text)
		}
		assert.Equal(t, []string{"run 0", "run 2"}, texts)
	})
}

func TestLogLines_DeletedPodIsLeft(t *testing.T) {
	for name, chatty := range map[string]bool{"that is silent": false, "that goes on": true} {
		t.Run(name, func(t *testing.T) {
			s := &logServer{}
			left := make(chan time.Duration, 1)
			s.log = func(_ int64, w http.ResponseWriter, r *http.Request) {
				s.send(w, "text")
				time.Sleep(time.Second)
				s.gone.Store(true)
				begun := time.Now()
				s.send(w, "last words")
				for chatty && r.Context().Err() == nil {
					time.Sleep(time.Second)
					s.send(w, "more")
				}
				hold(r)
				left <- time.Since(begun)
			}
			serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				text, err := followed(ctx, pods, true)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.True(t, strings.HasPrefix(text, "text\nlast words\n"), text)
				assert.LessOrEqual(t, <-left, 2*time.Minute)
			})
		})
	}
}
