package simulate

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/anykind/anykind/unstructured"
)

// eventBody is the body of a watch response. Each event waits for its arrival.
type eventBody struct {
	*io.PipeReader
	server io.Closer
}

// Close implements io.Closer.
func (b *eventBody) Close() error {
	_ = b.server.Close()
	return b.PipeReader.Close()
}

// watch replaces the body of a watch response. The scheduler decides when its events arrive.
func (l *link) watch(response *http.Response, r request) *http.Response {
	reader, writer := io.Pipe()
	body := response.Body
	response.Body = &eventBody{reader, body}
	l.run.watches.Add(1)
	go func() {
		err := l.deliver(bufio.NewReader(body), writer, r, response.Request)
		l.run.watches.Add(-1)
		_ = body.Close()
		_ = writer.CloseWithError(err)
	}()
	return response
}

// deliver copies events until the stream ends or breaks.
func (l *link) deliver(from *bufio.Reader, to io.Writer, r request, req *http.Request) error {
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return err
		}
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if event.Type == "BOOKMARK" || event.Type == "ERROR" || l.process == nil {
			if _, err := to.Write(line); err != nil {
				return err
			}
			continue
		}
		var obj struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(event.Object, &obj); err != nil {
			return err
		}
		id := objectID{r.resource, obj.Metadata.Namespace, obj.Metadata.Name}
		key := l.name() + " event " + event.Type + " " + id.String()
		key += " #" + strconv.Itoa(l.run.scheduler.number(key))
		if before, isHeld := l.run.choices.after[key]; isHeld {
			l.run.trace.add("server", "holds back the event "+event.Type+" of "+id.String()+" until after "+before)
		}
		if err := l.run.scheduler.waitOf(req.Context(), l.process, key, latency+l.run.choices.delay(key, "events of "+r.resource)+l.process.remainingLag()); err != nil {
			return err
		}
		if end := "end of watch at " + key; l.run.choices.choose(end, alternatives{"end of watch", []int{25}}) != 0 {
			l.run.choices.describe(end, "the connection is closed")
			l.run.trace.add("server", "closes the connection of the watch of "+r.resource+" before the event "+event.Type+" of "+id.String())
			return errLost()
		}
		if l.run.trace.isKept {
			l.seeEvent(event.Type, id, decode(event.Object))
		}
		if _, err := to.Write(line); err != nil {
			return err
		}
	}
}

func (l *link) seeEvent(eventType string, id objectID, obj *unstructured.Object) {
	if eventType == "DELETED" || obj == nil {
		l.process.see(id, nil)
		l.run.trace.add(l.name(), "sees DELETED "+id.String())
		return
	}
	l.process.see(id, obj)
	if !isIncidental(id.resource) {
		l.run.trace.add(l.name(), "sees "+eventType+" "+id.String()+" "+describeState(obj))
	}
}
