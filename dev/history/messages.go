package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Message is a status, list, object or watch event from an API server to a process.
type Message struct {
	At       int64
	Revision int64 // of the list, object or bookmark
	Key      ID    // the object's key in etcd, or for a list, bookmark or status the prefix of the requested keys
	Type     ID    // the type of a watch event, or a description
	Request  ID    // with its server
	Process  uint8 // as in Observer
}

// response records the messages of a response.
type response struct {
	recorder   *Recorder
	process    uint8
	request    ID
	prefix     string // of the keys of the resource
	namespace  string
	isProtobuf bool
}

// RecordResponse records a response to a process before the process gets it. resources maps the plural of each recorded resource to
// the prefix of its keys in etcd. The events of a watch are recorded while its body is read.
func (r *Recorder) RecordResponse(process uint8, resources map[string]string, from *http.Response) {
	url := from.Request.URL
	path := strings.Split(url.Path, "/")
	n := slices.IndexFunc(path, func(segment string) bool { return resources[segment] != "" })
	if from.Request.Method != http.MethodGet || n < 2 {
		return
	}
	a := &response{recorder: r, process: process, prefix: resources[path[n]], isProtobuf: strings.Contains(from.Header.Get("Content-Type"), "protobuf")}
	if path[n-2] == "namespaces" {
		a.namespace = path[n-1] + "/"
	}
	a.request = r.intern(fmt.Sprintf("%s GET %s, response at %s", url.Host, url.RequestURI(), seconds(r.Now())))
	a.add(from.Status, 0, "")
	switch {
	case from.StatusCode != http.StatusOK:
	case url.Query().Has("watch"):
		from.Body = &watchBody{ReadCloser: from.Body, response: a}
	default:
		text, _ := io.ReadAll(from.Body) // it returns its error again
		a.addBody(text, n == len(path)-1)
		from.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(text), from.Body), from.Body}
	}
}

func (a *response) add(description string, revision int64, name string) {
	r := a.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	key := a.prefix + a.namespace
	if name != "" {
		key = a.prefix + name
	}
	r.messages = append(r.messages, Message{
		At: r.Now(), Revision: revision, Key: r.internLocked(key), Type: r.internLocked(description), Request: a.request, Process: a.process,
	})
}

func (a *response) addObject(description string, obj *metav1.PartialObjectMetadata) {
	name := ""
	if obj.Name != "" {
		name = obj.Namespace + "/" + obj.Name
	}
	a.add(description, Revision(obj.ResourceVersion), name)
}

// addBody adds a list or an object.
func (a *response) addBody(text []byte, isList bool) {
	var list metav1.PartialObjectMetadataList
	var obj metav1.PartialObjectMetadata
	switch {
	case !isList && a.decode(text, &obj) == nil:
		a.addObject("object", &obj)
	case isList && a.decode(text, &list) == nil:
		for i := range list.Items {
			a.addObject("item", &list.Items[i])
		}
		a.add(fmt.Sprintf("list of %d items", len(list.Items)), Revision(list.ResourceVersion), "")
	default:
		a.add("body that is no object", 0, "")
	}
}

// addEvent adds a watch event.
func (a *response) addEvent(frame []byte) {
	var event metav1.WatchEvent
	var obj metav1.PartialObjectMetadata
	var err error
	if a.isProtobuf {
		err = event.Unmarshal(frame)
	} else {
		err = json.Unmarshal(frame, &event)
	}
	if err == nil {
		err = a.decode(event.Object.Raw, &obj)
	}
	if err != nil {
		a.add("frame that is no event", 0, "")
		return
	}
	a.addObject(event.Type, &obj)
}

// protobufPrefix begins an envelope.
const protobufPrefix = "k8s\x00"

// decode decodes the metadata of any list or object: in protobuf, they have the same numbers in all kinds.
func (a *response) decode(text []byte, into interface{ Unmarshal([]byte) error }) error {
	if !a.isProtobuf {
		return json.Unmarshal(text, into)
	}
	enveloped, found := bytes.CutPrefix(text, []byte(protobufPrefix))
	if !found {
		return errors.New("no envelope")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(enveloped); err != nil {
		return err
	}
	return into.Unmarshal(envelope.Raw)
}

// watchBody records the events of a watch before they are read.
type watchBody struct {
	io.ReadCloser

	response *response
	pending  []byte // the begin of a frame
}

func (b *watchBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.pending = append(b.pending, into[:n]...)
	for {
		frame, rest, isWhole := b.response.cutFrame(b.pending)
		if !isWhole {
			return n, err
		}
		b.response.addEvent(frame)
		b.pending = rest
	}
}

// cutFrame returns the first frame: a line, or in protobuf a length with so many bytes. A reader has an event once its JSON is whole, before
// the line break has arrived.
func (a *response) cutFrame(text []byte) (frame, rest []byte, isWhole bool) {
	if !a.isProtobuf {
		text = bytes.TrimLeft(text, "\n") // of an event whose JSON was read before
		if frame, rest, isWhole = bytes.Cut(text, []byte("\n")); isWhole {
			return frame, rest, true
		}
		return text, nil, json.Valid(text)
	}
	if len(text) < 4 {
		return nil, nil, false
	}
	size := int(binary.BigEndian.Uint32(text))
	if text = text[4:]; len(text) < size {
		return nil, nil, false
	}
	return text[:size], text[size:], true
}

// sentBefore checks that a server had sent each observed version to the observer's process.
func sentBefore(h *History) (found []Violation) {
	type version struct {
		process  uint8
		key      ID
		revision int64
	}
	sent := map[version]int64{}
	for _, a := range h.Messages {
		v := version{a.Process, a.Key, a.Revision}
		if _, isKnown := sent[v]; !isKnown {
			sent[v] = a.At
		}
	}
	for i := range h.Observations {
		o := &h.Observations[i]
		process := h.Observers[o.Observer].Process
		if o.Kind == Settled || o.Kind == Wrote || o.Key == 0 || o.Revision == 0 || process == 0 {
			continue
		}
		if at, isSent := sent[version{process, o.Key, o.Revision}]; !isSent || at > o.End {
			found = append(found, h.violation(i, "no server had sent the revision %d", o.Revision))
		}
	}
	return found
}

// messagesAround describes the messages to a process around a time: messages about a key, lists, bookmarks and statuses.
func (h *History) messagesAround(process uint8, key ID, at int64) (texts []string) {
	var chosen []int
	for _, isObject := range []bool{true, false} {
		var before, after []int
		for n, a := range h.Messages {
			isRelevant := a.Key == key
			if !isObject {
				isRelevant = strings.HasSuffix(h.texts[a.Key], "/") && strings.HasPrefix(h.texts[key], h.texts[a.Key])
			}
			switch {
			case a.Process != process || !isRelevant:
			case a.At <= at:
				before = append(before, n)
			case len(after) < contextSize:
				after = append(after, n)
			}
		}
		chosen = append(append(chosen, before[max(0, len(before)-2*contextSize):]...), after...)
	}
	slices.Sort(chosen)
	for _, n := range chosen {
		a := h.Messages[n]
		texts = append(texts, fmt.Sprintf("%s server: %s at %d: %s", seconds(a.At), h.texts[a.Type], a.Revision, h.texts[a.Request]))
	}
	return texts
}

func seconds(at int64) string { return fmt.Sprintf("%.6fs", time.Duration(at).Seconds()) }
