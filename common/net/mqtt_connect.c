#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ssl.h>
#include <sys/socket.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/net/mqtt_internal.h"

/* From the first packet to one address until its CONNACK. */
/* So soon an attempt notices that it may not go on. */
#define STEP_MS 1000
#define CONNECT_TIMEOUT_MS 10000

/* A password file is one line. */
#define MAX_PASSWORD 4096

/* The library repeats what it was asked and marks nothing, so the flag comes out of its log line:
 * "Client <id> received PUBLISH (d1, q1, …". */
static void see_duplicate(struct connection *connection, const char *line)
{
    static const char MARK[] = " received PUBLISH (d";
    size_t before = strlen("Client ") + strlen(connection->mqtt->options.client_id);

    if (strlen(line) > before && str_has_prefix(line + before, MARK))
        connection->duplicate = line[before + strlen(MARK)] == '1';
}

/* "OpenSSL Error[0]: error:0A00010B:SSL routines::wrong version number": the end is what helps. */
static void see_tls_problem(struct connection *connection, const char *line)
{
    const char *colon = strrchr(line, ':');

    if (!connection->tls_problem[0] && str_has_prefix(line, "OpenSSL Error") && colon)
        (void)str_copy(connection->tls_problem, sizeof(connection->tls_problem), colon + 1);
}

static void on_log(struct mosquitto *handle, void *data, int level, const char *line)
{
    (void)handle;
    if (level == MOSQ_LOG_DEBUG)
        see_duplicate(data, line);
    else if (level == MOSQ_LOG_ERR)
        see_tls_problem(data, line);
}

static void on_connect(struct mosquitto *handle, void *data, int code, int flags)
{
    struct connection *connection = data;
    struct mqtt *mqtt = connection->mqtt;
    bool session_present = flags & 1;

    (void)handle;
    if (code != 0) {
        connection->refused = code;
        return;
    }
    mqtt_filters_reset(connection, session_present);
    pthread_mutex_lock(&mqtt->lock);
    mqtt->connected = true;
    mqtt->why[0] = '\0';
    pthread_mutex_unlock(&mqtt->lock);
    connection->accepted = true;
    /* From here, so that it comes before the first message: both may be in one read. */
    if (mqtt->handlers.state)
        mqtt->handlers.state(mqtt->handlers.ctx, true, session_present, "");
}

static bool wants_retained(const struct mqtt *mqtt, const char *topic)
{
    bool matches = false;

    return mqtt->options.retained &&
           mosquitto_topic_matches_sub(mqtt->options.retained, topic, &matches) ==
               MOSQ_ERR_SUCCESS &&
           matches;
}

static void on_message(struct mosquitto *handle, void *data,
                       const struct mosquitto_message *message)
{
    struct connection *connection = data;
    struct mqtt *mqtt = connection->mqtt;
    size_t len = (size_t)message->payloadlen;

    mqtt->batch_bytes += len;
    bool is_old = message->retain && !wants_retained(mqtt, message->topic);

    (void)handle;
    if (is_old) {
        if (mqtt->handlers.retained)
            mqtt->handlers.retained(mqtt->handlers.ctx, message->topic);
        return;
    }
    mqtt->unsettled = true;
    mqtt->handlers.message(mqtt->handlers.ctx, message->topic, len ? message->payload : "", len,
                           message->qos == 1 && connection->duplicate);
}

static void on_publish(struct mosquitto *handle, void *data, int mid)
{
    (void)handle;
    mqtt_published(((struct connection *)data)->mqtt, mid);
}

static void on_subscribe(struct mosquitto *handle, void *data, int mid, int count,
                         const int *granted)
{
    (void)handle;
    mqtt_filters_granted(data, mid, count, granted);
}

static void on_unsubscribe(struct mosquitto *handle, void *data, int mid)
{
    (void)handle;
    mqtt_filters_removed(data, mid);
}

static int read_password(const char *path, char ret[static MAX_PASSWORD], struct error *err)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return error_set(err, ERROR_INVALID, "password file '%s': %s", path,
                         strerrordesc_np(errno));

    size_t len = fread(ret, 1, MAX_PASSWORD, file);
    bool failed = ferror(file);

    (void)fclose(file);
    if (failed)
        return error_set(err, ERROR_INVALID, "password file '%s' cannot be read", path);
    if (len == MAX_PASSWORD)
        return error_set(err, ERROR_INVALID, "password file '%s' is longer than %d bytes", path,
                         MAX_PASSWORD - 1);
    while (len && (ret[len - 1] == '\n' || ret[len - 1] == '\r'))
        len--;
    ret[len] = '\0';
    if (!len || memchr(ret, '\0', len))
        return error_set(err, ERROR_INVALID, "password file '%s' is empty or not text", path);
    return 0;
}

static int set_credentials(struct mosquitto *handle, const struct mqtt_options *options,
                           struct error *err)
{
    char from_file[MAX_PASSWORD];
    const char *password = options->password;

    if (!options->user_name)
        return 0;
    if (options->password_file) {
        int r = read_password(options->password_file, from_file, err);
        if (r < 0)
            return r;
        password = from_file;
    }

    int rc = mosquitto_username_pw_set(handle, options->user_name, password);

    explicit_bzero(from_file, sizeof(from_file));
    if (rc != MOSQ_ERR_SUCCESS)
        return error_set(err, ERROR_INVALID, "user name '%s' is not acceptable to MQTT",
                         options->user_name);
    return 0;
}

static int set_tls(struct connection *connection, struct error *err)
{
    SSL_CTX *context;

    if (!connection->mqtt->options.tls)
        return 0;

    int r = mqtt_tls_context(connection, &context, err);
    if (r < 0)
        return r;

    /* takes its own reference */
    mosquitto_void_option(connection->handle, MOSQ_OPT_SSL_CTX, context);
    mosquitto_int_option(connection->handle, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0);
    SSL_CTX_free(context);
    return 0;
}

static int make_handle(struct connection *connection, struct error *err)
{
    const struct mqtt_options *options = &connection->mqtt->options;
    struct mosquitto *handle =
        mosquitto_new(options->client_id, options->clean_session, connection);

    if (!handle)
        return error_set(err, ERROR_INVALID, "client id '%s' is not acceptable to MQTT",
                         options->client_id);
    connection->handle = handle;
    mosquitto_threaded_set(handle, true); /* from now on only mosquitto_loop_write() writes */
    mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V311);
    mosquitto_int_option(handle, MOSQ_OPT_SEND_MAXIMUM, MQTT_IN_FLIGHT);
    mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_log_callback_set(handle, on_log);
    mosquitto_connect_with_flags_callback_set(handle, on_connect);
    mosquitto_message_callback_set(handle, on_message);
    mosquitto_publish_callback_set(handle, on_publish);
    mosquitto_subscribe_callback_set(handle, on_subscribe);
    mosquitto_unsubscribe_callback_set(handle, on_unsubscribe);

    int r = set_credentials(handle, options, err);

    return r < 0 ? r : set_tls(connection, err);
}

/* Waits for events on the socket; 0: a while has passed, or somebody wants the thread. */
static short wait_for(struct mqtt *mqtt, int socket, short events)
{
    struct pollfd fds[] = { { .fd = socket, .events = events },
                            { .fd = mqtt->wake_fd, .events = POLLIN } };

    if (poll(fds, ARRAY_LEN(fds), STEP_MS) <= 0)
        return 0;
    if (fds[1].revents)
        mqtt_drain_wakes(mqtt);
    return fds[0].revents;
}

static int socket_error(int socket)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return errno;
    return error;
}

/* One step towards the CONNACK: TCP, then TLS, then CONNECT. Returns a code of the library. Who may
 * act when the step begins may not any more when the socket is ready for it. */
static int advance(struct connection *connection, int socket)
{
    struct mosquitto *handle = connection->handle;
    const SSL *ssl = mosquitto_ssl_get(handle);
    bool handshaking = ssl && !SSL_is_init_finished(ssl);
    bool writes = handshaking ? !SSL_want_read(ssl) : mosquitto_want_write(handle);
    short events = wait_for(connection->mqtt, socket, writes ? POLLIN | POLLOUT : POLLIN);

    if (!mqtt_may_act(connection->mqtt))
        return MOSQ_ERR_SUCCESS;
    if (events & (POLLERR | POLLHUP)) {
        errno = socket_error(socket);
        if (errno)
            return MOSQ_ERR_ERRNO;
    }
    if (handshaking) /* the library's name for going on with it */
        return events ? mosquitto_loop_read(handle, 1) : MOSQ_ERR_SUCCESS;
    if (events & POLLOUT && writes) {
        int rc = mosquitto_loop_write(handle, 1);
        if (rc != MOSQ_ERR_SUCCESS)
            return rc;
    }
    return events & (POLLIN | POLLHUP) ? mosquitto_loop_read(handle, 1) : MOSQ_ERR_SUCCESS;
}

static const char *refusal(int code)
{
    switch (code) { /* MQTT 3.1.1, table 3.1 */
    case 1:
        return "refused: protocol version not supported";
    case 2:
        return "refused: client id not allowed";
    case 3:
        return "refused: the broker is not available";
    case 4:
        return "refused: bad user name or password";
    case 5:
        return "refused: not authorised";
    default:
        return "refused for a reason that MQTT does not know";
    }
}

static int wait_accepted(struct connection *connection, struct error *err)
{
    struct mqtt *mqtt = connection->mqtt;
    int64_t deadline_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + CONNECT_TIMEOUT_MS;

    while (!connection->accepted) {
        if (mqtt_is_stopping(mqtt) || !mqtt_may_act(mqtt))
            return error_set(err, ERROR_CANCELED, "not allowed any more");
        if (clock_monotonic_ms(&CLOCK_SYSTEM) >= deadline_ms)
            return error_set(err, ERROR_TIMEOUT, "no answer in %d s", CONNECT_TIMEOUT_MS / 1000);

        int rc = advance(connection, mosquitto_socket(connection->handle));

        if (connection->refused)
            return error_set(err, ERROR_FORBIDDEN, "%s", refusal(connection->refused));
        if (rc != MOSQ_ERR_SUCCESS)
            return error_set(err, ERROR_UNAVAILABLE, "%s", mqtt_reason(connection, rc));
    }
    return 0;
}

static int open_address(struct connection *connection, const struct addrinfo *address,
                        struct error *err)
{
    const struct mqtt_options *options = &connection->mqtt->options;
    char text[NI_MAXHOST];
    int r = getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text), NULL, 0,
                        NI_NUMERICHOST);

    if (r != 0)
        return error_set(err, ERROR_INVALID, "%s", gai_strerror(r));
    r = make_handle(connection, err);
    if (r < 0)
        return r;

    int rc =
        mosquitto_connect_async(connection->handle, text, options->port, options->keep_alive_s);

    if (rc != MOSQ_ERR_SUCCESS)
        return error_set(err, ERROR_UNAVAILABLE, "%s", mqtt_reason(connection, rc));
    return wait_accepted(connection, err);
}

int mqtt_connection_open(struct connection *connection, struct error *err)
{
    struct mqtt *mqtt = connection->mqtt;
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *addresses;
    int r = getaddrinfo(mqtt->options.host, NULL, &hints, &addresses);

    if (r != 0) {
        (void)error_set(err, ERROR_UNAVAILABLE, "%s", gai_strerror(r));
        return error_wrap(err, "connect to '%s'", mqtt->broker);
    }
    for (const struct addrinfo *address = addresses; address; address = address->ai_next) {
        r = open_address(connection, address, err);
        if (r == 0 || r == -ERROR_CANCELED)
            break;
        mqtt_connection_close(connection);
    }
    freeaddrinfo(addresses);
    return r < 0 ? error_wrap(err, "connect to '%s'", mqtt->broker) : 0;
}

void mqtt_connection_close(struct connection *connection)
{
    mosquitto_destroy(connection->handle);
    mqtt_filters_forget(connection);
    *connection = (struct connection){ .mqtt = connection->mqtt };
}

const char *mqtt_reason(const struct connection *connection, int rc)
{
    switch (rc) {
    case MOSQ_ERR_ERRNO:
        return errno == EPROTO && connection->tls_problem[0] ? connection->tls_problem
                                                             : strerrordesc_np(errno);
    case MOSQ_ERR_CONN_LOST:
        return "closed by the broker";
    case MOSQ_ERR_KEEPALIVE:
        return "no answer to a ping";
    case MOSQ_ERR_PROTOCOL:
    case MOSQ_ERR_MALFORMED_PACKET:
        return "the broker broke the protocol";
    case MOSQ_ERR_TLS:
        return connection->tls_problem[0] ? connection->tls_problem : "TLS handshake failed";
    default:
        return mosquitto_strerror(rc);
    }
}
