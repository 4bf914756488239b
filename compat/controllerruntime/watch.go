package controllerruntime

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/unstructured"
)

// watchingClient is a client.WithWatch.
type watchingClient struct {
	client.Client
	api *apiClient
}

// Watch watches the objects of a list's kind, in the list's form. The watch ends with ctx, after Stop, or when the server closes
// the stream.
func (w *watchingClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	raw := options.AsListOptions()
	raw.Watch = true
	return w.api.watch(ctx, list, options.Namespace, raw)
}

func (a *apiClient) watch(ctx context.Context, list client.ObjectList, namespace string, options *metav1.ListOptions) (watch.Interface, error) {
	mapping, err := a.mapping(ctx, list)
	if err != nil {
		return nil, err
	}
	item, err := a.newItem(list)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	response, err := a.send(ctx, &request{ //nolint:bodyclose // The watch closes it.
		method: http.MethodGet, mapping: mapping, target: target{namespace: namespace, collection: true}, options: options, accept: a.acceptOf(item),
	})
	if err != nil {
		cancel()
		return nil, err
	}
	decoder := &watchDecoder{api: a, list: list, response: response, cancel: cancel}
	if strings.HasPrefix(response.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		decoder.frames = bufio.NewReader(response.Body)
	} else {
		decoder.events = a.limits().NewWatchDecoder(response.Body)
	}
	return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), decoder, apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
}

// watchDecoder decodes events to objects in a list's form; it is a watch.Decoder.
type watchDecoder struct {
	api      *apiClient
	list     client.ObjectList
	response *http.Response
	cancel   context.CancelFunc
	closing  sync.Once
	events   *unstructured.WatchDecoder // nil for protobuf
	frames   *bufio.Reader              // of protobuf
	frame    bytes.Buffer
}

func (d *watchDecoder) Close() {
	d.closing.Do(func() {
		d.cancel()
		_ = d.response.Body.Close()
	})
}

// Decode implements watch.Decoder.
func (d *watchDecoder) Decode() (watch.EventType, runtime.Object, error) {
	eventType, obj, err := d.decode()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.ErrUnexpectedEOF // the watcher expects the unwrapped error at the end of a stream
	}
	return eventType, obj, err
}

func (d *watchDecoder) decode() (watch.EventType, runtime.Object, error) {
	if formOf(d.list) == unstructuredForm {
		event, err := d.events.Next()
		if err != nil {
			return "", nil, err
		}
		if event.Type == watch.Error {
			status := &metav1.Status{}
			return event.Type, status, unstructured.Into(event.Object, status)
		}
		return event.Type, event.Object, nil
	}
	eventType, body, err := d.next()
	if err != nil {
		return "", nil, err
	}
	obj, err := d.api.decodeEvent(eventType, body, d.list)
	return eventType, obj, err
}

// next returns the type and the object of the next event. The object is valid until the next call.
func (d *watchDecoder) next() (eventType watch.EventType, body []byte, err error) {
	if d.frames == nil {
		event, err := d.events.NextLazy()
		if err != nil {
			return "", nil, err
		}
		return event.Type, event.Object.JSON(), nil
	}
	frame, err := readFrame(d.frames, &d.frame, d.api.limits())
	if err != nil {
		return "", nil, err
	}
	return splitEvent(frame)
}

func (a *apiClient) decodeEvent(eventType watch.EventType, body []byte, list client.ObjectList) (runtime.Object, error) {
	if eventType == watch.Error {
		status := &metav1.Status{}
		return status, unmarshal(body, status, a.limits())
	}
	item, err := a.newItem(list)
	if err != nil {
		return nil, err
	}
	metadata, isMetadata := item.(*metav1.PartialObjectMetadata)
	if !isMetadata {
		return item, a.decodeTyped(body, item, a.limits())
	}
	if isProtobuf(body) || bytes.HasPrefix(body, []byte("{")) {
		err = unmarshal(body, metadata, a.limits())
	} else { // the metadata of custom resources has no envelope
		err = unmarshalMessage(body, metadata, a.limits())
	}
	metadata.TypeMeta = metav1.TypeMeta{} // as in client-go's metadata client
	return metadata, err
}

// newItem returns an empty object of a list.
func (a *apiClient) newItem(list client.ObjectList) (runtime.Object, error) {
	switch formOf(list) {
	case unstructuredForm:
		return &unstructured.Object{}, nil
	case metadataForm:
		return &metav1.PartialObjectMetadata{}, nil
	default:
		gvk, err := apiutil.GVKForObject(list, a.scheme)
		if err != nil {
			return nil, err
		}
		return a.scheme.New(itemKind(gvk))
	}
}
