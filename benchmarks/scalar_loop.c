/* Coreset MCMC as a plain scalar loop: the baseline of benchmarks/iteration.py.

   Poisson regression with a softplus link, hit-and-run slice sampling with doubling, Hot DoG:
   the same algorithm as the package's, written the obvious way with libm's exp, log1p and log.
   The linear predictor is kept along a line, so that an evaluation costs O(M). What a careful
   author would do at once is done: log y! is computed beforehand, the predictor is carried from
   line to line, rows of weight zero are skipped. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define WIDTH 10.0
#define MAX_DOUBLINGS 20
#define MAX_SHRINKS 128
#define NUM_PASSES 3

typedef struct {
    int64_t num_rows, coreset_size, subsample_size, dimension, num_chains; /* N, M, S, D, K */
    const double *x, *y, *log_factorial;           /* N rows; x has D columns, the first all 1 */
    const double *core_x, *core_y, *core_log_factorial; /* M rows */
    int64_t *permutation;                          /* of 0 .. N - 1, in any order */
    double *weights, *initial_weights, *first_moment, *second_moment, *distance; /* M each */
    double *position, *loglikelihoods;             /* K x D, K x M */
    int64_t count;                                 /* updates of the weights so far */
    int64_t evaluations;                           /* of the log density, by all chains */
    uint64_t random[4];
} Problem;

static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t next(uint64_t *s) { /* xoshiro256++ */
    uint64_t result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

static double uniform(Problem *p) { return (double)(next(p->random) >> 11) * 0x1p-53; }

static double normal(Problem *p) {
    return sqrt(-2.0 * log1p(-uniform(p))) * cos(6.283185307179586 * uniform(p));
}

static double loglikelihood(double eta, double y, double log_factorial) {
    double mean = fmax(eta, 0.0) + log1p(exp(-fabs(eta)));
    return y * (eta > -40.0 ? log(mean) : eta) - mean - log_factorial;
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* The line through a chain's position. */
typedef struct {
    Problem *p;
    const double *position, *direction; /* D */
    const double *here, *slope;         /* M: the linear predictor and its change */
    double level;
} Line;

static double logdensity(const Line *line, double t) {
    Problem *p = line->p;
    double sum = 0.0;
    p->evaluations++;
    for (int64_t m = 0; m < p->coreset_size; m++)
        if (p->weights[m] > 0.0)
            sum += p->weights[m] * loglikelihood(line->here[m] + t * line->slope[m],
                                                 p->core_y[m], p->core_log_factorial[m]);
    for (int64_t i = 0; i < p->dimension; i++) {
        double beta = line->position[i] + t * line->direction[i];
        sum -= 0.5 * beta * beta;
    }
    return sum;
}

/* Neal (2003), Figure 6. */
static int reachable(const Line *line, double left, double right, double t) {
    int apart = 0;
    while (right - left > 1.1 * WIDTH) {
        double middle = 0.5 * (left + right);
        apart |= (middle > 0.0) != (middle > t);
        if (t < middle) right = middle;
        else left = middle;
        if (apart && !(logdensity(line, left) > line->level)
            && !(logdensity(line, right) > line->level))
            return 0;
    }
    return 1;
}

/* Neal (2003), Figures 4 and 5: the new t, from t = 0; its log density replaces *value. */
static double slice(Line *line, double *value) {
    Problem *p = line->p;
    line->level = *value + log1p(-uniform(p));
    double left = -WIDTH * uniform(p), right = left + WIDTH;
    double at_left = logdensity(line, left), at_right = logdensity(line, right);
    for (int k = 0; k < MAX_DOUBLINGS && (at_left > line->level || at_right > line->level); k++) {
        if (uniform(p) < 0.5) left -= right - left, at_left = logdensity(line, left);
        else right += right - left, at_right = logdensity(line, right);
    }
    double low = left, high = right;
    for (int k = 0; k < MAX_SHRINKS; k++) {
        double t = low + uniform(p) * (high - low), there = logdensity(line, t);
        if (there > line->level && reachable(line, left, right, t)) {
            *value = there;
            return t;
        }
        if (t < 0.0) low = t;
        else high = t;
    }
    return 0.0;
}

static void evaluate_rows(const Problem *p, int64_t chain, double *eta) {
    const double *position = p->position + chain * p->dimension;
    double *terms = p->loglikelihoods + chain * p->coreset_size;
    for (int64_t m = 0; m < p->coreset_size; m++) {
        eta[m] = dot(p->core_x + m * p->dimension, position, p->dimension);
        terms[m] = loglikelihood(eta[m], p->core_y[m], p->core_log_factorial[m]);
    }
}

static void move_chain(Problem *p, int64_t chain, double *eta, double *slope, double *direction) {
    double *position = p->position + chain * p->dimension;
    const double *terms = p->loglikelihoods + chain * p->coreset_size;
    double value = dot(p->weights, terms, p->coreset_size)
                   - 0.5 * dot(position, position, p->dimension);
    for (int64_t m = 0; m < p->coreset_size; m++)
        eta[m] = dot(p->core_x + m * p->dimension, position, p->dimension);
    for (int pass = 0; pass < NUM_PASSES; pass++) {
        for (int64_t i = 0; i < p->dimension; i++) direction[i] = normal(p);
        double length = sqrt(dot(direction, direction, p->dimension));
        for (int64_t i = 0; i < p->dimension; i++) direction[i] /= length;
        for (int64_t m = 0; m < p->coreset_size; m++)
            slope[m] = dot(p->core_x + m * p->dimension, direction, p->dimension);
        Line line = {p, position, direction, eta, slope, 0.0};
        double t = slice(&line, &value);
        for (int64_t i = 0; i < p->dimension; i++) position[i] += t * direction[i];
        for (int64_t m = 0; m < p->coreset_size; m++) eta[m] += t * slope[m];
    }
    evaluate_rows(p, chain, eta);
}

/* The gradient estimate, from S distinct rows; residual has K entries. */
static void estimate_gradient(Problem *p, double *residual, double *gradient) {
    int64_t K = p->num_chains, M = p->coreset_size;
    double scale = (double)p->num_rows / (double)p->subsample_size;
    for (int64_t k = 0; k < K; k++) residual[k] = 0.0;
    for (int64_t s = 0; s < p->subsample_size; s++) { /* a partial Fisher-Yates shuffle */
        int64_t j = s + (int64_t)(uniform(p) * (double)(p->num_rows - s));
        int64_t row = p->permutation[j];
        p->permutation[j] = p->permutation[s], p->permutation[s] = row;
        double terms[K], mean = 0.0;
        for (int64_t k = 0; k < K; k++) {
            double eta = dot(p->x + row * p->dimension, p->position + k * p->dimension,
                             p->dimension);
            terms[k] = loglikelihood(eta, p->y[row], p->log_factorial[row]);
            mean += terms[k] / (double)K;
        }
        for (int64_t k = 0; k < K; k++) residual[k] -= scale * (terms[k] - mean);
    }
    for (int64_t m = 0; m < M; m++) { /* the mean over chains, for now */
        gradient[m] = 0.0;
        for (int64_t k = 0; k < K; k++) gradient[m] += p->loglikelihoods[k * M + m] / (double)K;
    }
    for (int64_t k = 0; k < K; k++)
        for (int64_t m = 0; m < M; m++)
            residual[k] += p->weights[m] * (p->loglikelihoods[k * M + m] - gradient[m]);
    for (int64_t m = 0; m < M; m++) {
        double mean = gradient[m], sum = 0.0;
        for (int64_t k = 0; k < K; k++)
            sum += residual[k] * (p->loglikelihoods[k * M + m] - mean);
        gradient[m] = sum / (double)(K - 1);
    }
}

static void hot_dog(Problem *p, const double *gradient) {
    const double r = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    double c = (double)++p->count;
    double first = 1.0 - pow(beta1, c), second = 1.0 - pow(beta2, c);
    double travelled = 1.0 - pow(beta1, c - 1.0);
    for (int64_t i = 0; i < p->coreset_size; i++) {
        double g = gradient[i], d = p->distance[i];
        double m = p->first_moment[i] = beta1 * p->first_moment[i] + (1.0 - beta1) * g;
        double v = p->second_moment[i] = beta2 * p->second_moment[i] + (1.0 - beta2) * g * g;
        d = beta1 * d + (1.0 - beta1) * fmax(fabs(p->weights[i] - p->initial_weights[i]), d);
        p->distance[i] = d;
        double step = (d > 0.0 ? d / travelled : r) * (m / first) / sqrt(c * (v / second + eps));
        p->weights[i] = fmax(p->weights[i] - step, 0.0);
    }
}

/* Run so many iterations; with none, only evaluate the coreset's rows at the chains' positions. */
void run(Problem *p, int64_t iterations) {
    int64_t M = p->coreset_size;
    double *scratch = malloc(sizeof(double) * (3 * M + p->dimension + p->num_chains));
    double *gradient = scratch, *eta = scratch + M, *slope = scratch + 2 * M;
    double *direction = scratch + 3 * M, *residual = direction + p->dimension;
    if (iterations == 0)
        for (int64_t k = 0; k < p->num_chains; k++) evaluate_rows(p, k, eta);
    for (int64_t i = 0; i < iterations; i++) {
        estimate_gradient(p, residual, gradient);
        hot_dog(p, gradient);
        for (int64_t k = 0; k < p->num_chains; k++) move_chain(p, k, eta, slope, direction);
    }
    free(scratch);
}
