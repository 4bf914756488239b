package stream

import (
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/retry"
)

// maxLogRetries limits the retries, without progress, of a log that is not followed.
const maxLogRetries = 5

// errPodGone is the error of a deleted pod, or of a pod replaced by a new pod of the same name.
var errPodGone = errors.New("the pod is gone")

// logBackoff is for connections without new lines.
var logBackoff = retry.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Second}

// containerRun is a run of a container: a restart begins a new run, with its own log.
type containerRun struct {
	uid      string // the pod's; "" if unknown
	restarts int
	finished time.Time // the end of the previous run, in whole seconds; zero if unknown
}

// containerRun returns the current run of a container and whether it is running.
func (p *pod) containerRun(container string) (run containerRun, isRunning bool) {
	run.uid = p.Metadata.UID
	for _, status := range p.containerStatuses() {
		if status.Name != container {
			continue
		}
		run.restarts = status.RestartCount
		if previous := status.LastState.Terminated; previous != nil {
			run.finished = previous.FinishedAt
		}
		return run, status.State.Running != nil
	}
	return run, true
}

// identify determines the container and its run.
func (l *containerLog) identify() error {
	var found pod
	err := getJSON(l.ctx, l.conn, l.podPath, &found)
	if apierrors.IsForbidden(err) {
		return nil // may read logs, but not pods: the server chooses the container
	}
	if err == nil && l.opts.Container == "" {
		l.opts.Container, err = found.defaultContainer()
	}
	l.run, _ = found.containerRun(l.opts.Container)
	return err
}

// identifyAgain updates the run after the log was opened: the container may have been restarted in the meantime.
func (l *containerLog) identifyAgain() {
	var found pod
	if l.run.uid == "" || getJSON(l.ctx, l.conn, l.podPath, &found) != nil || found.Metadata.UID != l.run.uid {
		return
	}
	if run, _ := found.containerRun(l.opts.Container); run.restarts > l.run.restarts {
		l.run = run
	}
}

// connect makes the next connection. Transient errors are retried, after the first connection or if the node does not know the pod.
func (l *containerLog) connect() error {
	for {
		response, err := l.conn.Do(l.ctx, l.request()) //nolint:bodyclose // disconnect does, or the end of ctx
		isTransient := l.recordError(err) && l.connects > 0
		if err == nil {
			l.connected(response)
			return nil
		}
		if apierrors.IsNotFound(err) {
			isTransient, err = l.notFound(err)
		}
		if !isTransient || (!l.opts.Follow || l.connects == 0) && l.retries >= maxLogRetries {
			return l.ended(err)
		}
		if err := l.backOff(); err != nil {
			return err
		}
	}
}

// waitForLog makes the first connection to a running container: its node may need a moment to serve its log.
func (l *containerLog) waitForLog() error {
	l.waitingSince.Store(time.Now().UnixNano())
	for {
		err := l.connect()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errPodGone):
			return err
		case apierrors.IsNotFound(err):
		case l.opts.Previous && apierrors.IsBadRequest(err):
			return fmt.Errorf("%w: the node has no log of the run: %w", io.ErrUnexpectedEOF, err)
		case retry.IsTerminal(err) && !apierrors.IsBadRequest(err) && (!l.hadLogs || !l.recordError(err)):
			return err
		}
		_, isRunning, readErr := l.readRun()
		switch {
		case readErr != nil:
			return readErr
		case !isRunning && l.retries >= maxLogRetries:
			return err
		}
		if err := l.backOff(); err != nil {
			return err
		}
	}
}

// notFound handles the 404 of a log. The API server, not the node, knows whether the pod is gone, which the returned error then is: a
// restarted node does not know its pods yet. Without a running container the number of retries is limited.
func (l *containerLog) notFound(err error) (isTransient bool, _ error) {
	if l.run.uid == "" {
		return false, err
	}
	var found pod
	readErr := getJSON(l.ctx, l.conn, l.podPath, &found)
	isOther := readErr == nil && (found.Metadata.UID != l.run.uid || found.Metadata.DeletionTimestamp != nil)
	switch {
	case isOther, apierrors.IsNotFound(readErr):
		return false, fmt.Errorf("%w: %w", errPodGone, err)
	case readErr != nil:
		return !retry.IsTerminal(readErr), err
	}
	_, isRunning := found.containerRun(l.opts.Container)
	return isRunning && l.opts.Follow && !l.isFinal || l.retries < maxLogRetries, err
}

// recordError records denials. It reports whether a new attempt may succeed. It must be called with the result of every attempt: a starting server
// denies everything to users with permissions from RBAC.
func (l *containerLog) recordError(err error) (isTransient bool) {
	denied := l.denials.Record(err)
	return !retry.IsTerminal(err) || denied && (l.connects > 0 || l.hadLogs)
}

// backOff waits, with a delay growing with the retries without new lines.
func (l *containerLog) backOff() error {
	l.retries++
	return logBackoff.Wait(l.ctx, l.retries)
}

// ended returns the result of an unreadable log: success if the last connection ended regularly and the container is gone.
func (l *containerLog) ended(err error) error {
	isGone := apierrors.IsNotFound(err) || (l.opts.Previous && apierrors.IsBadRequest(err))
	switch {
	case l.connects == 0 || !isGone:
		return err
	case l.breakErr == nil:
		l.complete = true
		l.isGone = apierrors.IsNotFound(err)
		return nil
	default:
		return l.lostLines(err)
	}
}

// lostLines returns the error of a log with lost lines at its end.
func (l *containerLog) lostLines(cause error) error {
	return fmt.Errorf("%w: the connection broke, and later lines are lost: %w (%w)", io.ErrUnexpectedEOF, cause, l.breakErr)
}

// disconnected handles the end of a connection: it leads to a new connection, the end of the log, or an error.
func (l *containerLog) disconnected(err error) error {
	l.breakErr = nil
	if err != io.EOF { //nolint:errorlint // one that is wrapped is a broken connection
		l.breakErr = err
	}
	if l.ctx.Err() != nil {
		return retry.WithContextError(l.ctx, err)
	}
	if !l.opts.Follow || l.isFinal {
		return l.finalDisconnected()
	}
	// Connections that end at once are repeated with a backoff, with or without new lines.
	if l.retries > 0 || l.breakErr != nil || l.connects > 1 && time.Since(l.clock.at) < time.Second {
		if err := l.backOff(); err != nil {
			return err
		}
	}
	l.retries++
	now, isRunning, err := l.readRun()
	if err != nil {
		return l.withoutRun(err)
	}
	return l.compareRun(now, isRunning)
}

// finalDisconnected handles the end of a connection of a complete log.
func (l *containerLog) finalDisconnected() error {
	if l.breakErr == nil {
		l.complete = true
		return nil
	}
	if l.retries >= maxLogRetries {
		return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, l.breakErr)
	}
	return l.backOff()
}

// withoutRun handles the end of a connection if the pod could not be read.
func (l *containerLog) withoutRun(err error) error {
	isUnreadable := apierrors.IsForbidden(err) && l.run.uid == "" // may read logs, but not pods
	switch {
	case errors.Is(err, errPodGone) && l.breakErr != nil:
		return l.lostLines(err)
	case errors.Is(err, errPodGone), isUnreadable && l.breakErr == nil:
		l.complete = true
		l.isGone = !isUnreadable
		return nil
	case isUnreadable:
		return nil
	default:
		return err
	}
}

// compareRun handles the end of a connection if the container's current run is known.
func (l *containerLog) compareRun(now containerRun, isRunning bool) error {
	if l.connects == 1 && l.isOfRunAfter(now) {
		l.run = now
	}
	switch missed := now.restarts - l.run.restarts; {
	case missed > 1 && l.breakErr != nil:
		return l.lostLines(fmt.Errorf("the container was restarted %d times since", missed))
	case missed > 1:
		l.complete = true
	case missed == 1:
		l.isFinal = true
		l.opts.Follow = false
		l.opts.Previous = true
	case !isRunning:
		// A connection broken by the node may look like a regular end. A new connection shows the missing lines.
		l.isFinal = true
	}
	return nil
}

// isOfRunAfter reports whether returned lines are newer than the end of the run before now: the container was restarted between
// identify and the opening of its log.
func (l *containerLog) isOfRunAfter(now containerRun) bool {
	return now.restarts > l.run.restarts && !now.finished.IsZero() && !l.recent.newest.Before(now.finished.Add(time.Second))
}

func (l *containerLog) readRun() (now containerRun, isRunning bool, err error) {
	for {
		var found pod
		err := getJSON(l.ctx, l.conn, l.podPath, &found)
		denied := l.denials.Record(err)
		switch {
		case apierrors.IsNotFound(err), err == nil && l.run.uid != "" && found.Metadata.UID != l.run.uid:
			return now, false, errPodGone
		case err == nil:
			now, isRunning = found.containerRun(l.opts.Container)
			return now, isRunning, nil
		case retry.IsTerminal(err) && (!denied || l.run.uid == ""):
			return now, false, err
		}
		if err := l.backOff(); err != nil {
			return now, false, err
		}
	}
}
