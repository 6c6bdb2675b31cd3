/*
 * The words that a mistyped word may mean.
 */
#ifndef GPUMEM_REPORT_NEAREST_H
#define GPUMEM_REPORT_NEAREST_H

struct gm_nearest {
	const char *word, *name; /* the typed word; the best candidate so far, NULL */
	unsigned distance;	 /* of that one */
};

/*
 * Takes `name` if it is nearer to the word than the candidates before: by letters that are missing,
 * too many, wrong or exchanged, of which a third of the word may be; the beginning of a name is
 * near.
 */
void gm_nearest_try(struct gm_nearest *nearest, const char *name);

#endif
