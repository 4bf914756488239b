package unstructured

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/jsonread"
)

// ListDecoder reads the items of a list from a response's body, in sequence. The list's fields may have any order. The decoder
// holds a single item in memory, with one exception: items without kind and apiVersion wait for the list's kind and apiVersion.
// No Kubernetes server sends these behind the items. A ListDecoder is not safe for concurrent use.
type ListDecoder struct {
	r        *jsonread.Reader
	head     map[string]any // the list's fields without its items
	isOpen   bool           // its opening brace has been read
	sawItems bool
	inItems  bool // an item is next or has just been read
	hasEnded bool
	count    int           // items read
	itemType *itemType     // of items with neither kind nor apiVersion; nil until known
	waiting  []waitingItem // items waiting for itemType, and the items behind them
	err      error

	// In bytes of memory; see Limits.
	limit int64      // of an item, and of held
	held  int64      // by head and waiting
	page  *pageLimit // nil without a limit for the items together
}

type waitingItem struct {
	item    any // an *Object or a *Lazy
	hasType bool
	size    int64 // in memory
}

const listChunk = 32 << 10

// NewListDecoder returns a decoder of the list in r. It reads r to the end, and the caller closes r. An item beyond the default
// of [Limits].Object is a *[LimitError].
func NewListDecoder(r io.Reader) *ListDecoder { return Limits{}.NewListDecoder(r) }

// NewListDecoder is [NewListDecoder] with the limit l.Object for each item, and for the memory held by the decoder itself. The
// number of items is not limited.
func (l Limits) NewListDecoder(r io.Reader) *ListDecoder {
	d := &ListDecoder{r: jsonread.NewReader(r, listChunk), head: map[string]any{}, limit: l.object()}
	d.r.Limit(d.limit, l.objectError())
	return d
}

// NewPageDecoder is [Limits.NewListDecoder] for a caller keeping the items: l.Page limits all items together.
func (l Limits) NewPageDecoder(r io.Reader) *ListDecoder {
	d := l.NewListDecoder(r)
	d.page = &pageLimit{limit: l.page()}
	return d
}

// NotListError reports an object in place of a list, such as a Status or a single object.
type NotListError struct {
	Object *Object // the input
}

func (e *NotListError) Error() string {
	return fmt.Sprintf("%s %s is not a list: it has no items", printable(e.Object.GetAPIVersion()), printable(e.Object.GetKind()))
}

// Next reads the next item like [Decode], but accepts an item without a kind. An item with neither kind nor apiVersion gets the
// list's apiVersion, and the list's kind without the suffix List. After the last item Next returns io.EOF itself.
//
// A list is an object with items, possibly null, or an object of a kind ending in List. Any different object with a kind is a
// *NotListError (errors.As); apimachinery makes an empty list of it. Input ending early is io.ErrUnexpectedEOF, and a failing
// reader returns its own error (errors.Is). A list without a kind is rejected as in Decode. Unlike in apimachinery, a list with a
// duplicate kind, apiVersion or items is rejected, too. Errors may follow valid items: a list is complete only at io.EOF. After
// an error Next returns the same error again.
func (d *ListDecoder) Next() (*Object, error) { return nextItem(d, fullDecoder{}) }

// NextLazy is Next without decoding the item. It returns the same errors. Calls of Next and NextLazy must not be mixed.
func (d *ListDecoder) NextLazy() (*Lazy, error) { return nextItem(d, lazyDecoder{}) }

// Meta returns the list's metadata read so far, without the deprecated selfLink. It is final once Next has returned io.EOF: lists
// of custom resources have the metadata behind the items. Fields of a wrong type are omitted. With apimachinery before 0.36
// shardInfo is omitted, too: its ListMeta has no such field.
func (d *ListDecoder) Meta() metav1.ListMeta {
	var meta metav1.ListMeta
	fields, _ := d.head["metadata"].(map[string]any)
	meta.ResourceVersion, _ = fields["resourceVersion"].(string)
	meta.Continue, _ = fields["continue"].(string)
	if count, ok := fields["remainingItemCount"].(int64); ok {
		meta.RemainingItemCount = &count
	}
	if shard, ok := fields["shardInfo"].(map[string]any); ok {
		selector, _ := shard["selector"].(string)
		meta = withShardInfo(meta, selector)
	}
	return meta
}

// withShardInfo returns meta with its field ShardInfo. apimachinery has the field from 0.36 on, so encoding/json sets it: this
// code names neither the field nor its type.
func withShardInfo(meta metav1.ListMeta, selector string) metav1.ListMeta {
	text, err := json.Marshal(map[string]any{"shardInfo": map[string]string{"selector": selector}})
	if err == nil {
		_ = json.Unmarshal(text, &meta)
	}
	return meta
}

// TypeMeta returns the list's own kind and apiVersion read so far. It is final once Next has returned io.EOF.
func (d *ListDecoder) TypeMeta() metav1.TypeMeta {
	kind, _ := d.head["kind"].(string)
	apiVersion, _ := d.head["apiVersion"].(string)
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
}

func nextItem[T any](d *ListDecoder, decoder objectDecoder[T]) (*T, error) {
	for d.err == nil {
		if d.err = d.advance(); d.err != nil {
			break
		}
		if d.hasEnded {
			return nextWaiting(d, decoder)
		}
		d.r.Shrink(listChunk)
		var size int64
		d.r.BeginPart(d.limit)
		item, hasType, err := decoder.item(d.r, d.itemType)
		if err == nil {
			size, err = d.r.EndPart()
		}
		if err == nil {
			err = d.page.add(size)
		}
		if err != nil {
			if _, notObject := errors.AsType[*notObjectError](err); notObject {
				err = fmt.Errorf("the list's items[%d] %w", d.count, err)
			}
			d.err = err
			break
		}
		d.count++
		if hasType && len(d.waiting) == 0 {
			return item, nil
		}
		d.waiting = append(d.waiting, waitingItem{item, hasType, size})
		d.held += size
	}
	d.waiting = nil
	return nil, d.err
}

// nextWaiting returns the first waiting item at the end of the list. It returns io.EOF if no item is waiting.
func nextWaiting[T any](d *ListDecoder, decoder objectDecoder[T]) (*T, error) {
	if len(d.waiting) == 0 {
		d.err = io.EOF
		return nil, d.err
	}
	first := d.waiting[0]
	d.waiting[0] = waitingItem{}
	d.waiting = d.waiting[1:]
	item, ok := first.item.(*T)
	if !ok {
		d.err = errors.New("a list must be read by Next alone or by NextLazy alone")
		return nil, d.err
	}
	if first.hasType {
		return item, nil
	}
	d.r.BeginPart(d.limit - first.size)
	if d.err = d.r.Charge(d.itemType.size); d.err == nil {
		d.err = d.page.add(d.itemType.size)
	}
	if d.err != nil {
		return nil, d.err
	}
	return decoder.withType(item, d.itemType), nil
}

// advance reads up to the next item, or to the end.
func (d *ListDecoder) advance() (err error) {
	if d.inItems {
		d.inItems, err = d.r.NextElement()
	}
	for err == nil && !d.inItems && !d.hasEnded {
		err = d.readHeld()
	}
	return err
}

// readHeld is readMember within the limit of the memory held by the decoder.
func (d *ListDecoder) readHeld() error {
	d.r.BeginPart(d.limit - d.held)
	if err := d.readMember(); err != nil {
		return err
	}
	size, err := d.r.EndPart()
	d.held += size
	return err
}

// readMember reads a member of the list. Of items it reads only the opening bracket.
func (d *ListDecoder) readMember() error {
	name, more, err := d.nextMember()
	if err != nil {
		return err
	}
	if !more {
		return d.finish()
	}
	if name == "items" {
		return d.openItems()
	}
	v, err := d.r.Value()
	if err != nil {
		return err
	}
	if _, found := d.head[name]; found && (name == "kind" || name == "apiVersion") {
		return &duplicateFieldError{name}
	}
	d.head[name] = v
	if list := d.TypeMeta(); list.Kind != "" && list.APIVersion != "" && d.itemType == nil {
		d.itemType = newItemType(list)
	}
	return nil
}

func (d *ListDecoder) nextMember() (name string, more bool, err error) {
	if d.isOpen {
		return d.r.NextMember()
	}
	if err := d.r.Expect('{', "where a list should begin"); err != nil {
		return "", false, err
	}
	d.isOpen = true
	return d.r.OpenObject()
}

func (d *ListDecoder) openItems() error {
	if d.sawItems {
		return &duplicateFieldError{"items"}
	}
	d.sawItems = true
	if c, _ := d.r.Peek(); c == 'n' {
		return d.r.Literal("null")
	}
	err := d.r.Expect('[', "where a list's items should begin")
	if err == nil {
		d.inItems, err = d.r.OpenList()
	}
	return err
}

// finish reads to the end of the input and validates the whole list.
func (d *ListDecoder) finish() error {
	if err := d.r.End(); err != nil {
		return err
	}
	if err := checkType(d.head); err != nil {
		return err
	}
	if !d.sawItems && !strings.HasSuffix(d.TypeMeta().Kind, "List") {
		return &NotListError{Object: &Object{Object: d.head}}
	}
	d.hasEnded = true
	if d.itemType == nil {
		d.itemType = newItemType(d.TypeMeta())
	}
	return nil
}

// duplicateFieldError reports a duplicate field. apimachinery accepts duplicates, but items may have been returned already.
type duplicateFieldError struct{ name string }

func (e *duplicateFieldError) Error() string {
	return fmt.Sprintf("the list has two fields named %q", e.name)
}
