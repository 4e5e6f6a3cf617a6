// SPDX-License-Identifier: Apache-2.0

// clients ADDRESS PROFILE: what other people's gRPC clients do with a server. Pyroscope's own client
// pushes and queries by Connect, gRPC and gRPC-Web; arrow-go writes samples as Parca's agent does,
// with whose schema they are built; grpc-go checks health, and lets its balancer watch it.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// HTTP/2 without TLS.
var http2Client = &http.Client{Transport: &http2.Transport{
	AllowHTTP: true,
	DialTLSContext: func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	},
}}

func pyroscope(ctx context.Context, address string, profile []byte) {
	ways := []struct {
		name    string
		client  *http.Client
		options []connect.ClientOption
	}{
		{"connect", http.DefaultClient, nil},
		{"connect-json", http.DefaultClient, []connect.ClientOption{connect.WithProtoJSON()}},
		{"grpc", http2Client, []connect.ClientOption{connect.WithGRPC()}},
		{"grpc-gzip", http2Client, []connect.ClientOption{connect.WithGRPC(), connect.WithSendGzip()}},
		{"web", http.DefaultClient, []connect.ClientOption{connect.WithGRPCWeb()}},
		{"web-2", http2Client, []connect.ClientOption{connect.WithGRPCWeb()}},
	}
	var first []byte
	end := time.Now().Add(time.Hour).UnixMilli()
	for _, way := range ways {
		push := pushv1connect.NewPusherServiceClient(way.client, "http://"+address, way.options...)
		must(push.Push(ctx, connect.NewRequest(&pushv1.PushRequest{Series: []*pushv1.RawProfileSeries{{
			Labels:  []*typesv1.LabelPair{{Name: "__name__", Value: "process_cpu"}, {Name: "service_name", Value: way.name}},
			Samples: []*pushv1.RawSample{{RawProfile: profile}},
		}}})))
		query := querierv1connect.NewQuerierServiceClient(way.client, "http://"+address, way.options...)
		answer := must(query.SelectMergeProfile(ctx, connect.NewRequest(&querierv1.SelectMergeProfileRequest{
			ProfileTypeID: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
			LabelSelector: `{service_name="` + way.name + `"}`,
			Start:         0, End: end,
		})))
		if len(answer.Msg.Sample) == 0 {
			log.Fatalf("%s: an empty profile", way.name)
		}
		stored := must(proto.MarshalOptions{Deterministic: true}.Marshal(answer.Msg))
		if first == nil {
			first = stored
		}
		if !bytes.Equal(first, stored) {
			log.Fatalf("%s: what is stored differs from what came by connect", way.name)
		}
		_, err := query.SelectMergeProfile(ctx, connect.NewRequest(&querierv1.SelectMergeProfileRequest{ProfileTypeID: "nonsense"}))
		if connect.CodeOf(err) != connect.CodeNotFound {
			log.Fatalf("%s: a wrong query got %v", way.name, err)
		}
	}
	fmt.Println("pyroscope: the same", len(ways), "times")
}

// Messages that are bytes already.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "proto" }

func runs(value arrow.DataType) *arrow.RunEndEncodedType {
	return arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, value)
}

func words(value arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: value}
}

// One run of a value for all rows.
func constant(kind *arrow.RunEndEncodedType, rows int, add func(array.Builder)) arrow.Array {
	builder := array.NewRunEndEncodedBuilder(memory.DefaultAllocator, kind.RunEnds(), kind.Encoded())
	builder.Append(uint64(rows))
	add(builder.ValueBuilder())
	return builder.NewArray()
}

func text(rows int, value string) arrow.Array {
	return constant(runs(arrow.BinaryTypes.String), rows, func(b array.Builder) { b.(*array.StringBuilder).Append(value) })
}

func list(kind arrow.DataType, rows int, offsets, sizes []int32, values arrow.Array) arrow.Array {
	int32s := func(numbers []int32) *memory.Buffer {
		b := array.NewInt32Builder(memory.DefaultAllocator)
		b.AppendValues(numbers, nil)
		return b.NewArray().Data().Buffers()[1]
	}
	return array.MakeFromData(array.NewData(kind, rows, []*memory.Buffer{nil, int32s(offsets), int32s(sizes)},
		[]arrow.ArrayData{values.Data()}, 0, 0))
}

func structure(kind *arrow.StructType, rows int, columns ...arrow.Array) arrow.Array {
	data := []arrow.ArrayData{}
	for _, column := range columns {
		data = append(data, column.Data())
	}
	return array.MakeFromData(array.NewData(kind, rows, []*memory.Buffer{nil}, data, 0, 0))
}

func uint64s(numbers ...uint64) arrow.Array {
	b := array.NewUint64Builder(memory.DefaultAllocator)
	b.AppendValues(numbers, nil)
	return b.NewArray()
}

func uint32s(numbers ...uint32) arrow.Array {
	b := array.NewUint32Builder(memory.DefaultAllocator)
	b.AppendValues(numbers, nil)
	return b.NewArray()
}

func dictionary(values ...string) arrow.Array {
	b := array.NewDictionaryBuilder(memory.DefaultAllocator, words(arrow.BinaryTypes.String)).(*array.BinaryDictionaryBuilder)
	for _, value := range values {
		if value == "" {
			b.AppendNull()
		} else {
			must(0, b.AppendString(value))
		}
	}
	return b.NewArray()
}

// Rows of a stack of two functions and an address, as the agent's version 2 has them.
func record(rows int) []byte {
	functionType := arrow.StructOf(
		arrow.Field{Name: "system_name", Type: arrow.BinaryTypes.StringView, Nullable: true},
		arrow.Field{Name: "filename", Type: words(arrow.BinaryTypes.String), Nullable: true},
		arrow.Field{Name: "start_line", Type: arrow.PrimitiveTypes.Uint64})
	lineType := arrow.StructOf(
		arrow.Field{Name: "line", Type: arrow.PrimitiveTypes.Uint64},
		arrow.Field{Name: "column", Type: arrow.PrimitiveTypes.Uint64},
		arrow.Field{Name: "function", Type: words(functionType)})
	locationType := arrow.StructOf(
		arrow.Field{Name: "address", Type: arrow.PrimitiveTypes.Uint64},
		arrow.Field{Name: "frame_type", Type: words(arrow.BinaryTypes.String), Nullable: true},
		arrow.Field{Name: "mapping_file", Type: words(arrow.BinaryTypes.String), Nullable: true},
		arrow.Field{Name: "mapping_build_id", Type: words(arrow.BinaryTypes.String), Nullable: true},
		arrow.Field{Name: "lines", Type: arrow.ListViewOf(lineType), Nullable: true})
	names := array.NewStringViewBuilder(memory.DefaultAllocator)
	names.AppendValues([]string{"short", "a function with a name that is not short"}, nil)
	functions := structure(functionType, 2, names.NewArray(), dictionary("a.py", "b.py"), uint64s(0, 0))
	lines := structure(lineType, 2, uint64s(3, 4), uint64s(0, 0), array.NewDictionaryArray(words(functionType), uint32s(0, 1), functions))
	locations := structure(locationType, 3, uint64s(0, 0, 0x1234), dictionary("cpython", "cpython", "native"),
		dictionary("", "", "/usr/bin/peer"), dictionary("", "", "00112233445566778899aabbccddeeff"),
		list(arrow.ListViewOf(lineType), 3, []int32{0, 1, 2}, []int32{1, 1, 0}, lines))
	offsets, sizes, one := make([]int32, rows), make([]int32, rows), make([]int64, rows)
	times := array.NewTimestampBuilder(memory.DefaultAllocator, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"})
	start := time.Now().Add(-time.Minute)
	for i := range rows {
		sizes[i], one[i] = 3, 1
		times.Append(arrow.Timestamp(start.Add(time.Duration(i) * time.Millisecond).UnixNano()))
	}
	values := array.NewInt64Builder(memory.DefaultAllocator)
	values.AppendValues(one, nil)
	labelType := runs(words(arrow.BinaryTypes.String))
	labelsType := arrow.StructOf(arrow.Field{Name: "comm", Type: labelType, Nullable: true})
	comm := constant(labelType, rows, func(b array.Builder) { must(0, b.(*array.BinaryDictionaryBuilder).AppendString("peer")) })
	columns := map[string]arrow.Array{
		"labels":      structure(labelsType, rows, comm),
		"stacktrace":  list(arrow.ListViewOf(words(locationType)), rows, offsets, sizes, array.NewDictionaryArray(words(locationType), uint32s(0, 1, 2), locations)),
		"value":       values.NewArray(),
		"sample_type": text(rows, "samples"), "sample_unit": text(rows, "count"),
		"period_type": text(rows, "cpu"), "period_unit": text(rows, "nanoseconds"), "temporality": text(rows, "delta"),
		"period":    constant(runs(arrow.PrimitiveTypes.Int64), rows, func(b array.Builder) { b.(*array.Int64Builder).Append(1000) }),
		"timestamp": times.NewArray(),
	}
	fields, arrays := []arrow.Field{}, []arrow.Array{}
	for name, column := range columns {
		fields = append(fields, arrow.Field{Name: name, Type: column.DataType(), Nullable: true})
		arrays = append(arrays, column)
	}
	schema := arrow.NewSchema(fields, nil)
	var out bytes.Buffer
	writer := ipc.NewWriter(&out, ipc.WithSchema(schema), ipc.WithLZ4())
	must(0, writer.Write(array.NewRecord(schema, arrays, int64(rows))))
	must(0, writer.Close())
	return out.Bytes()
}

func parca(ctx context.Context, connection *grpc.ClientConn, rows int) {
	message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), record(rows))
	for range 2 { // as after a lost answer
		var answer []byte
		must(0, connection.Invoke(ctx, "/parca.profilestore.v1alpha1.ProfileStoreService/WriteArrow", &message, &answer,
			grpc.ForceCodec(rawCodec{})))
	}
	fmt.Println("parca:", rows, "samples")
}

func health(ctx context.Context, connection *grpc.ClientConn) {
	client := grpc_health_v1.NewHealthClient(connection)
	checked := must(client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "push.v1.PusherService"}))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := must(client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{}))
	if seen := must(watch.Recv()); seen.Status != checked.Status || seen.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		log.Fatalf("health: %v and %v", checked, seen)
	}
	fmt.Println("health: serving")
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	address := os.Args[1]
	// A balancer that watches the health of the one backend, and sends nothing before it serves.
	balanced := `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": "push.v1.PusherService"}}`
	connection := must(grpc.NewClient("dns:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(balanced)))
	defer connection.Close()
	pyroscope(ctx, address, must(os.ReadFile(os.Args[2])))
	health(ctx, connection)
	parca(ctx, connection, 500)
}
